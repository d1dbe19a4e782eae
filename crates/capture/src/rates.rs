//! Activity of a database seen from outside: the rate at which its threads give up their core to wait.
//!
//! The rate is not a unit of work; the ratio with and without recording gives the cost of recording.

use std::time::Instant;

use tierwise_recording::Cost;

use crate::processes;

/// A stretch of time, with its number of waits.
#[derive(Clone, Copy, Debug)]
struct Span {
    recorded: bool,
    elapsed_s: f64,
    waits: u64,
}

impl Span {
    fn rate_per_s(&self) -> f64 {
        self.waits as f64 / self.elapsed_s.max(1e-9)
    }
}

/// Cuts time into spans, with and without recording.
pub struct RateMeter {
    spans: Vec<Span>,
    since: u64,
    at: Instant,
}

impl RateMeter {
    /// Begins the first span.
    #[must_use]
    pub fn start(pids: &[i32]) -> Self {
        Self {
            spans: Vec::new(),
            since: processes::waits(pids),
            at: Instant::now(),
        }
    }

    /// Begins the current span again; the time since the last span's end is of none.
    pub fn restart(&mut self, pids: &[i32]) {
        (self.since, self.at) = (processes::waits(pids), Instant::now());
    }

    /// Ends the current span, and begins the next.
    pub fn end(&mut self, pids: &[i32], recorded: bool) {
        let waits = processes::waits(pids);
        let now = Instant::now();
        self.spans.push(Span {
            recorded,
            elapsed_s: (now - self.at).as_secs_f64(),
            waits: waits.saturating_sub(self.since),
        });
        (self.since, self.at) = (waits, now);
    }

    /// Cost of recording; without a comparison, only the cost of one event.
    #[must_use]
    pub fn cost(&self, event_cpu_ns: f64) -> Cost {
        cost_of(&self.spans, event_cpu_ns).unwrap_or(Cost {
            rate_ratio: 1.0,
            rate_ratio_low: 0.0,
            rate_ratio_high: 2.0,
            event_cpu_ns,
        })
    }
}

/// Rate with recording over that without, with a 95 % interval; none for too few pairs.
///
/// Each burst is compared with the spans beside it, so that a slow change of the load cancels out.
fn cost_of(spans: &[Span], event_cpu_ns: f64) -> Option<Cost> {
    let compared = |at: usize| {
        let beside = &spans[at.saturating_sub(1)..(at + 2).min(spans.len())];
        let others = beside.iter().filter(|span| !span.recorded);
        let rates: Vec<f64> = others.map(Span::rate_per_s).collect();
        let known =
            spans[at].waits > 0 && !rates.is_empty() && rates.iter().all(|rate| *rate > 0.0);
        known.then(|| (spans[at].rate_per_s() / mean(&rates)).ln())
    };
    let recorded = (0..spans.len()).filter(|&at| spans[at].recorded);
    let logs: Vec<f64> = recorded.filter_map(compared).collect();
    if logs.len() < 2 {
        return None;
    }
    let (middle, half) = (mean(&logs), mean_half_width(&logs));
    Some(Cost {
        rate_ratio: middle.exp(),
        rate_ratio_low: (middle - half).exp(),
        rate_ratio_high: (middle + half).exp(),
        event_cpu_ns,
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// 97.5 % points of Student's distribution, by degrees of freedom from 1 on.
const STUDENT_95: [f64; 10] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
];

/// Half the width of the 95 % interval of a mean of at least two values.
fn mean_half_width(values: &[f64]) -> f64 {
    let freedom = values.len() - 1;
    let many = freedom as f64;
    // Beyond the table: the first terms of the quantile's expansion in 1 / freedom, accurate to 0.1 %.
    let beyond = 1.960 + 2.372 / many + 2.82 / many.powi(2);
    let student = STUDENT_95.get(freedom - 1).copied().unwrap_or(beyond);
    let middle = mean(values);
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    student * (squares / many / values.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(recorded: bool, elapsed_s: f64, waits: u64) -> Span {
        Span {
            recorded,
            elapsed_s,
            waits,
        }
    }

    #[test]
    fn each_burst_is_compared_with_its_neighbours() {
        let load = |number: u64| 1000 * (1 + number); // Grows all the time, and is no cost.
        let spans: Vec<Span> = (0..6)
            .flat_map(|number| {
                [
                    span(false, 1.0, load(number) - 500),
                    span(true, 0.5, load(number) * 9 / 20),
                    span(false, 1.0, load(number) + 500),
                ]
            })
            .collect();
        let cost = cost_of(&spans, 200.0).unwrap();
        assert!((cost.rate_ratio - 0.9).abs() < 0.01);
        assert!(cost.rate_ratio_low <= cost.rate_ratio && cost.rate_ratio <= cost.rate_ratio_high);
    }

    #[test]
    fn there_is_no_cost_without_pairs() {
        assert_eq!(cost_of(&[span(true, 1.0, 100)], 200.0), None);
        let idle = [span(false, 1.0, 0), span(true, 1.0, 0)].repeat(3);
        assert_eq!(cost_of(&idle, 200.0), None);
    }

    #[test]
    fn the_interval_of_a_mean_is_students() {
        let width = mean_half_width(&[1.0, 2.0, 3.0]);
        assert!((width - 4.303 / 3f64.sqrt()).abs() < 1e-9);
    }
}
