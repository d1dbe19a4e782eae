//! Activity of a database seen from outside: the rate at which its threads give up their core to wait, and their
//! processor time.
//!
//! The rate is not a unit of work; its ratio with and without recording gives the cost of recording, as does the
//! ratio of the processor time for each wait.

use std::collections::HashMap;
use std::time::Instant;

use tierwise_recording::Cost;

use crate::host::processes::{self, ThreadActivity};

/// Share of a burst's processor time that threads have to have which lived through the span beside it, too, for the two to
/// be compared. Chosen: else sessions began or ended between, and the load was another.
const LASTING_SHARE: f64 = 0.9;

/// A stretch of time, with what each thread did in it that lived from its begin to its end.
#[derive(Clone, Debug)]
struct ThreadActivitySpan {
    recorded: bool,
    elapsed_s: f64,
    did: HashMap<i32, ThreadActivity>,
    /// Processor time of the threads that were started in it, too.
    cpu_ns: u64,
}

impl ThreadActivitySpan {
    /// What the threads did that lived through another span, too.
    fn with(&self, other: &Self) -> ThreadActivity {
        let lasting = self
            .did
            .iter()
            .filter(|(tid, _)| other.did.contains_key(tid));
        lasting.fold(ThreadActivity::default(), |sum, (_, did)| sum + *did)
    }

    fn waits_per_s(&self, did: ThreadActivity) -> f64 {
        did.waits as f64 / self.elapsed_s.max(1e-9)
    }

    fn cpu_ns_each(&self, did: ThreadActivity) -> f64 {
        did.cpu_ns as f64 / did.waits.max(1) as f64
    }
}

/// Cuts time into spans, with and without recording.
///
/// Each burst is compared with the spans beside it, so that a slow change of the load cancels out, by the threads that
/// lived through both.
pub struct RecordingRateMeter {
    /// The last two spans: a long recording has too many.
    recent: Vec<ThreadActivitySpan>,
    /// Logarithm of each figure with recording over that without, by burst.
    logs: [Vec<f64>; 2],
    since: HashMap<i32, ThreadActivity>,
    at: Instant,
}

const FIGURES: [fn(&ThreadActivitySpan, ThreadActivity) -> f64; 2] = [
    ThreadActivitySpan::waits_per_s,
    ThreadActivitySpan::cpu_ns_each,
];

impl RecordingRateMeter {
    #[must_use]
    pub fn start(pids: &[i32]) -> Self {
        Self {
            recent: Vec::new(),
            logs: Default::default(),
            since: processes::thread_activities(pids),
            at: Instant::now(),
        }
    }

    /// Begins the current span again; the time since the last span's end is of none.
    pub fn restart(&mut self, pids: &[i32]) {
        (self.since, self.at) = (processes::thread_activities(pids), Instant::now());
    }

    pub fn end(&mut self, pids: &[i32], recorded: bool) {
        let until = processes::thread_activities(pids);
        let now = Instant::now();
        let since = |tid| self.since.get(tid).copied();
        let each = until.iter();
        let did = each
            .clone()
            .filter_map(|(tid, did)| Some((*tid, *did - since(tid)?)));
        let did = did.collect();
        let cpu_ns = each.map(|(tid, did)| (*did - since(tid).unwrap_or_default()).cpu_ns);
        let cpu_ns = cpu_ns.sum();
        self.add(ThreadActivitySpan {
            recorded,
            elapsed_s: (now - self.at).as_secs_f64(),
            did,
            cpu_ns,
        });
        (self.since, self.at) = (until, now);
    }

    fn add(&mut self, span: ThreadActivitySpan) {
        let [.., before, burst] = &self.recent[..] else {
            self.recent.push(span);
            return;
        };
        for (logs, figure) in self.logs.iter_mut().zip(FIGURES) {
            logs.extend(log_ratio_to_neighbours(
                burst,
                [Some(before), Some(&span)],
                figure,
            ));
        }
        self.recent.remove(0);
        self.recent.push(span);
    }

    /// Cost of recording; with intervals that say nothing where there is no comparison.
    #[must_use]
    pub fn cost(&self) -> Cost {
        let mut with_last = self.logs.clone();
        if let [before @ .., burst] = &self.recent[..] {
            for (logs, figure) in with_last.iter_mut().zip(FIGURES) {
                logs.extend(log_ratio_to_neighbours(
                    burst,
                    [before.last(), None],
                    figure,
                ));
            }
        }
        let [rate, cpu] = with_last.map(|logs| ratio_interval(&logs).unwrap_or([0.0, 1.0, 2.0]));
        Cost {
            rate_ratio: rate[1],
            rate_ratio_low: rate[0],
            rate_ratio_high: rate[2],
            cpu_ratio: cpu[1],
            cpu_ratio_low: cpu[0],
            cpu_ratio_high: cpu[2],
        }
    }
}

/// Logarithm of a burst's figure over the mean of those beside it; none if there is nothing to compare with.
fn log_ratio_to_neighbours(
    burst: &ThreadActivitySpan,
    beside: [Option<&ThreadActivitySpan>; 2],
    figure: fn(&ThreadActivitySpan, ThreadActivity) -> f64,
) -> Option<f64> {
    let ratio = |other: &ThreadActivitySpan| {
        let (of_burst, of_other) = (burst.with(other), other.with(burst));
        let lasting = of_burst.cpu_ns as f64 >= LASTING_SHARE * burst.cpu_ns as f64;
        let (value, other) = (figure(burst, of_burst), figure(other, of_other));
        (lasting && value > 0.0 && other > 0.0).then_some(other / value)
    };
    let others = beside.into_iter().flatten().filter(|span| !span.recorded);
    let without: Vec<f64> = others.filter_map(ratio).collect();
    (burst.recorded && !without.is_empty()).then(|| -mean(&without).ln())
}

/// The mean of logarithms as a ratio, between the ends of its 95 % interval; none for too few.
fn ratio_interval(logs: &[f64]) -> Option<[f64; 3]> {
    if logs.len() < 2 {
        return None;
    }
    let (middle, half) = (mean(logs), mean_half_width(logs));
    Some([middle - half, middle, middle + half].map(f64::exp))
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

    /// What one thread did.
    fn span(recorded: bool, elapsed_s: f64, waits: u64) -> ThreadActivitySpan {
        let cpu_ns = waits * if recorded { 50_000 } else { 40_000 };
        of_threads(
            recorded,
            elapsed_s,
            &[(1, ThreadActivity { waits, cpu_ns })],
        )
    }

    fn of_threads(
        recorded: bool,
        elapsed_s: f64,
        did: &[(i32, ThreadActivity)],
    ) -> ThreadActivitySpan {
        ThreadActivitySpan {
            recorded,
            elapsed_s,
            cpu_ns: did.iter().map(|(_, did)| did.cpu_ns).sum(),
            did: did.iter().copied().collect(),
        }
    }

    fn cost_of(spans: impl IntoIterator<Item = ThreadActivitySpan>) -> Cost {
        let mut meter = RecordingRateMeter::start(&[]);
        spans.into_iter().for_each(|span| meter.add(span));
        meter.cost()
    }

    #[test]
    fn each_burst_is_compared_with_its_neighbours() {
        let load = |number: u64| 1000 * (1 + number); // Grows all the time, and is no cost.
        let cost = cost_of((0..6).flat_map(|number| {
            [
                span(false, 1.0, load(number) - 500),
                span(true, 0.5, load(number) * 9 / 20),
                span(false, 1.0, load(number) + 500),
            ]
        }));
        assert!((cost.rate_ratio - 0.9).abs() < 0.01);
        assert!(cost.rate_ratio_low <= cost.rate_ratio && cost.rate_ratio <= cost.rate_ratio_high);
        assert!((cost.cpu_ratio - 1.25).abs() < 1e-9);
    }

    #[test]
    fn the_last_burst_counts_by_the_span_before_it() {
        let pair = [span(false, 1.0, 1000), span(true, 1.0, 900)];
        let cost = cost_of(pair.into_iter().cycle().take(4));
        assert!((cost.rate_ratio - 0.9).abs() < 1e-9 && cost.rate_ratio_low > 0.8);
    }

    #[test]
    fn a_span_in_which_sessions_begin_or_end_is_not_compared() {
        let writer = |waits| (1, ThreadActivity { waits, cpu_ns: 100 });
        let session = |waits| {
            (
                2,
                ThreadActivity {
                    waits,
                    cpu_ns: 50_000,
                },
            )
        };
        let idle = of_threads(false, 1.0, &[writer(5)]);
        let busy = |recorded, waits| of_threads(recorded, 1.0, &[writer(5), session(waits)]);
        let cost = cost_of([
            idle.clone(),
            busy(true, 895),
            busy(false, 995),
            busy(true, 895),
            idle,
        ]);
        let (low, high) = (cost.rate_ratio_low, cost.rate_ratio_high);
        assert!(
            (cost.rate_ratio - 0.9).abs() < 1e-9 && high - low < 1e-9,
            "{low} to {high}"
        );
    }

    #[test]
    fn there_is_no_ratio_without_pairs() {
        let idle = vec![vec![span(false, 1.0, 0), span(true, 1.0, 0)]; 3].concat();
        let alone = vec![span(true, 1.0, 100)];
        for spans in [idle, alone] {
            let cost = cost_of(spans);
            assert_eq!((cost.rate_ratio_low, cost.rate_ratio_high), (0.0, 2.0));
            assert_eq!((cost.cpu_ratio_low, cost.cpu_ratio_high), (0.0, 2.0));
        }
    }

    #[test]
    fn the_interval_of_a_mean_is_students() {
        let width = mean_half_width(&[1.0, 2.0, 3.0]);
        assert!((width - 4.303 / 3f64.sqrt()).abs() < 1e-9);
    }
}
