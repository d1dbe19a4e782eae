//! The schedule of a recording: bursts spread over the run, with unrecorded time between them.

use std::time::Duration;

use crate::RecordError;

/// More leaves too little unrecorded time to compare with, and too much data to bound.
const MOST_DUTY: f64 = 0.5;
const LONGEST_S: f64 = 7.0 * 86_400.0;
/// Time before a burst, as a share of the room in its period.
const EARLIEST: f64 = 0.25;

/// Bursts of `burst` that cover `duty` of the time.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Length of the recording.
    pub length: Duration,
    /// Share of the time in which events are recorded.
    pub duty: f64,
    /// Length of one burst.
    pub burst: Duration,
}

impl Schedule {
    /// Of these times in seconds.
    ///
    /// # Errors
    /// If one of them cannot be, naming the option.
    pub fn new(seconds: f64, duty: f64, burst_s: f64) -> Result<Self, RecordError> {
        let refused = |option: &str, value: f64, fix: &str| {
            Err(RecordError::new(format!("{option}: {value} is none"), fix))
        };
        if !(seconds > 0.0 && seconds <= LONGEST_S) {
            return refused("--seconds", seconds, "use more than 0 s and at most a week");
        }
        if !(duty > 0.0 && duty <= MOST_DUTY) {
            return refused(
                "--duty",
                duty,
                "use a share of the time such as 1/10, at most 1/2",
            );
        }
        if !(0.01..=60.0).contains(&burst_s) {
            return refused("--burst", burst_s, "use 0.01 to 60 s");
        }
        Ok(Self {
            length: Duration::from_secs_f64(seconds),
            duty,
            burst: Duration::from_secs_f64(burst_s),
        })
    }

    /// Time in which events are recorded.
    pub fn recorded(&self) -> Duration {
        self.length
            .mul_f64(self.duty)
            .max(self.burst.min(self.length))
    }

    /// Time before each burst, without end: randomised, with one burst in each period.
    ///
    /// A burst at a fixed point of every period would alias with periodic work.
    pub fn gaps(&self) -> impl Iterator<Item = Duration> {
        let room = self.burst.div_f64(self.duty) - self.burst;
        let (mut state, mut rest) = (1, Duration::ZERO);
        std::iter::from_fn(move || {
            let share = EARLIEST + (1.0 - 2.0 * EARLIEST) * uniform(&mut state);
            let before = room.mul_f64(share);
            let gap = rest + before;
            rest = room - before;
            Some(gap)
        })
    }
}

/// A number from 0 to 1, by SplitMix64 (Steele, Lea and Flood, 2014).
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_take_their_share_of_the_time_at_no_fixed_point() {
        let schedule = Schedule::new(60.0, 0.1, 0.5).unwrap();
        let gaps_s: Vec<f64> = schedule
            .gaps()
            .take(200)
            .map(|gap| gap.as_secs_f64())
            .collect();
        let recorded_s = 0.5 * gaps_s.len() as f64;
        let duty = recorded_s / (recorded_s + gaps_s.iter().sum::<f64>());
        assert!((duty - 0.1).abs() < 0.002, "{duty}");
        let mut different: Vec<_> = gaps_s.iter().map(|gap| (gap * 1e6) as u64).collect();
        different.sort_unstable();
        different.dedup();
        assert!(different.len() > 100 && different[0] > 0);
        assert_eq!(schedule.recorded(), Duration::from_secs(6));
    }

    #[test]
    fn what_cannot_be_is_told_with_its_option() {
        let told = |seconds, duty, burst| Schedule::new(seconds, duty, burst).unwrap_err().message;
        assert!(told(0.0, 0.1, 0.5).starts_with("--seconds"));
        assert!(told(f64::NAN, 0.1, 0.5).starts_with("--seconds"));
        assert!(told(1.0, 2.0, 0.5).starts_with("--duty"));
        assert!(told(1.0, 0.1, 1e9).starts_with("--burst"));
    }
}
