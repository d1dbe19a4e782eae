//! The schedule of a recording, which is bursts with unrecorded time between them, and the disk space that it takes.

use std::time::Duration;

use crate::UserError;
use crate::tracer::BurstSummary;

const LONGEST_S: f64 = 7.0 * 86_400.0;
const LEAST_LIMIT_BYTES: u64 = 1_000_000;
/// Time before a burst, as a share of the room in its period.
const EARLIEST: f64 = 0.25;
const LONGEST_BURST_S: f64 = 0.5;
/// Bursts of a short recording. What recording costs is known by how bursts differ from the time beside them: of two
/// bursts, half of that interval is 12.7 standard errors, of eight 2.4.
const FEW_BURSTS: f64 = 8.0;
/// A shorter one cuts too many transactions of a slow disk at its edges.
const SHORT_BURST_S: f64 = 0.1;
const LEAST_BURST_S: f64 = 0.01;

/// Length of a recording, unless another is asked.
pub const DEFAULT_S: f64 = 120.0;
/// Events of this time predict within some percent (docs/how-to/record.md).
const ENOUGH_EVENTS_S: f64 = 4.8;
/// A server that uses all cores loses 10 to 12 % of its rate within bursts: at most 0.5 % of it at this duty.
const LEAST_DEFAULT_DUTY: f64 = 1.0 / 25.0;
const MOST_DEFAULT_DUTY: f64 = 1.0 / 10.0;

/// Share of the time in which events are recorded, unless another is asked: 1/25, and more of a recording that is
/// shorter than two minutes, up to 1/10.
#[must_use]
pub fn default_burst_share(seconds: f64) -> f64 {
    (ENOUGH_EVENTS_S / seconds).clamp(LEAST_DEFAULT_DUTY, MOST_DEFAULT_DUTY)
}

/// Length of a burst: half a second, or an eighth of what is recorded; a quarter of very little. Of a recording without
/// pauses, or of no known length, half a second.
#[must_use]
pub fn default_burst_s(seconds: Option<f64>, duty: f64) -> f64 {
    let Some(seconds) = seconds.filter(|_| duty < 1.0) else {
        return LONGEST_BURST_S;
    };
    let recorded_s = seconds * duty;
    let short_s = (recorded_s / FEW_BURSTS).max((recorded_s / 4.0).min(SHORT_BURST_S));
    short_s.clamp(LEAST_BURST_S, LONGEST_BURST_S)
}

/// Bursts of `burst` that cover `duty` of the time.
///
/// With a duty of 1, bursts are as long as memory allows, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct BurstSchedule {
    /// Length of the recording; none if it lasts until it is stopped.
    pub length: Option<Duration>,
    /// Share of the time in which events are recorded.
    pub duty: f64,
    /// Length of one burst.
    pub burst: Duration,
    /// Largest size of the recording.
    pub limit_bytes: u64,
}

impl BurstSchedule {
    /// Of these times in seconds.
    ///
    /// # Errors
    /// If one of them cannot be, naming the option.
    pub fn new(
        seconds: Option<f64>,
        duty: f64,
        burst_s: f64,
        limit_bytes: u64,
    ) -> Result<Self, UserError> {
        let refused = |problem: String, fix: &str| Err(UserError::new(problem, fix));
        if let Some(seconds) = seconds.filter(|seconds| !(0.0..=LONGEST_S).contains(seconds)) {
            let problem = format!("--duration: {seconds} s is no length of a recording");
            return refused(problem, "use more than 0 s and at most a week");
        }
        if seconds == Some(0.0) {
            return refused(
                "--duration: 0 s".into(),
                "use more than 0 s and at most a week",
            );
        }
        if !(duty > 0.0 && duty <= 1.0) {
            let problem = format!("--duty: {duty} is no share of the time");
            return refused(problem, "use a fraction such as 1/10, at most 1");
        }
        if !(LEAST_BURST_S..=60.0).contains(&burst_s) {
            let problem = format!("--burst: {burst_s} s is no length of a burst");
            return refused(problem, "use 0.01 to 60 s");
        }
        let period_s = burst_s / duty;
        if let Some(seconds) = seconds.filter(|&seconds| duty < 1.0 && seconds < period_s) {
            let problem = format!(
                "--burst: with its pause, a burst of {burst_s} s takes {period_s} s, and the recording {seconds} s"
            );
            let fix = "record longer, or with a shorter --burst or a greater --duty";
            return refused(problem, fix);
        }
        if limit_bytes < LEAST_LIMIT_BYTES {
            let problem = format!(
                "--limit: {} is too little for a burst",
                megabytes_text(limit_bytes)
            );
            return refused(problem, "use at least 1");
        }
        Ok(Self {
            length: seconds.map(Duration::from_secs_f64),
            duty,
            burst: Duration::from_secs_f64(burst_s),
            limit_bytes,
        })
    }

    /// Whether every event is recorded: there is no unrecorded time in which the same work ran.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.duty >= 1.0
    }

    /// Time in which events are recorded, of a recording of this length.
    fn recorded(&self, length: Duration) -> Duration {
        length.mul_f64(self.duty).max(self.burst.min(length))
    }
}

/// Time before each burst: randomised, with one burst in each period.
///
/// A burst at a fixed point of every period would alias with periodic work.
#[derive(Clone, Copy, Debug)]
pub struct BurstGaps {
    state: u64,
    rest: Duration,
}

impl Default for BurstGaps {
    fn default() -> Self {
        let (state, rest) = (1, Duration::ZERO);
        Self { state, rest }
    }
}

impl BurstGaps {
    /// Time before the next burst, of bursts of this length that cover `duty` of the time.
    pub fn before(&mut self, burst: Duration, duty: f64) -> Duration {
        let room = burst.div_f64(duty) - burst;
        let share = EARLIEST + (1.0 - 2.0 * EARLIEST) * random_fraction(&mut self.state);
        let before = room.mul_f64(share);
        let gap = self.rest + before;
        self.rest = room - before;
        gap
    }
}

/// A number from 0 to 1, by SplitMix64 (Steele, Lea and Flood, 2014).
fn random_fraction(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Largest size of a recording, by default.
pub const DEFAULT_LIMIT_BYTES: u64 = 1_000_000_000;

/// Bytes that one event takes in a recording under pgbench: 3.7 with 468,000 events/s (docs/how-to/record.md), 5.4 with
/// 24,000 events/s.
const EVENT_BYTES: f64 = 5.5;
/// The tables' own size and what is known about the machine.
const EMPTY_BYTES: f64 = 50_000.0;
/// A burst of more bytes waits in a file to be decoded, and so do all until this much waits in memory.
const LARGEST_IN_MEMORY: f64 = 64e6;
const MOST_WAITING: f64 = 256e6;
/// Free space must be this many times what is expected: a trial of 0.1 s does not see all of the load.
const SAFETY: u64 = 2;

/// What a recording is expected to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingSpaceNeed {
    /// In the end.
    pub expected_bytes: u64,
    /// Besides that while it runs, in files without names.
    pub waiting_bytes: u64,
}

impl RecordingSpaceNeed {
    /// By the events of a trial, of a recording of this length.
    pub fn expected(trial: &BurstSummary, schedule: &BurstSchedule, length: Duration) -> Self {
        let per_s = |count: u64| count as f64 / trial.length.as_secs_f64().max(1e-3);
        let recorded_s = schedule.recorded(length).as_secs_f64();
        let burst = per_s(trial.bytes) * schedule.burst.as_secs_f64();
        let waiting = (per_s(trial.bytes) * recorded_s).min(MOST_WAITING + 2.0 * burst);
        let expected = EMPTY_BYTES + recorded_s * per_s(trial.events) * EVENT_BYTES;
        Self {
            expected_bytes: (expected as u64).min(schedule.limit_bytes),
            waiting_bytes: match burst > LARGEST_IN_MEMORY {
                true => waiting as u64,
                false => 0,
            },
        }
    }

    /// Refuses a file system that has too little left.
    pub fn require(&self, free_bytes: u64) -> Result<(), UserError> {
        let needed = SAFETY * self.expected_bytes + self.waiting_bytes;
        if free_bytes >= needed {
            return Ok(());
        }
        let (needed, free) = (megabytes_text(needed), megabytes_text(free_bytes));
        Err(UserError::new(
            format!("the recording needs {needed}, and {free} are free"),
            "name a directory on another file system, or record for a shorter time",
        ))
    }

    pub fn sentence(&self) -> String {
        let expected = megabytes_text(self.expected_bytes);
        let waiting = match self.waiting_bytes {
            0 => String::new(),
            bytes => format!(", {} more until it is decoded", megabytes_text(bytes)),
        };
        format!("the recording will take about {expected}{waiting}")
    }
}

pub fn recording_bytes(events: u64) -> u64 {
    (events as f64 * EVENT_BYTES) as u64
}

/// A size in words.
#[must_use]
pub fn megabytes_text(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule_of(seconds: f64, duty: f64, burst_s: f64) -> Result<BurstSchedule, UserError> {
        BurstSchedule::new(Some(seconds), duty, burst_s, DEFAULT_LIMIT_BYTES)
    }

    #[test]
    fn short_recordings_have_a_greater_duty_by_default() {
        let duties = [3600.0, DEFAULT_S, 60.0, 45.0, 5.0].map(default_burst_share);
        assert_eq!(duties, [0.04, 0.04, 0.08, 0.1, 0.1]);
    }

    #[test]
    fn bursts_take_their_share_of_the_time_at_no_fixed_point() {
        let schedule = schedule_of(60.0, 0.1, 0.5).unwrap();
        let mut gaps = BurstGaps::default();
        let gaps_s: Vec<f64> = (0..200)
            .map(|_| gaps.before(schedule.burst, schedule.duty).as_secs_f64())
            .collect();
        let recorded_s = 0.5 * gaps_s.len() as f64;
        let duty = recorded_s / (recorded_s + gaps_s.iter().sum::<f64>());
        assert!((duty - 0.1).abs() < 0.002, "{duty}");
        let mut different: Vec<_> = gaps_s.iter().map(|gap| (gap * 1e6) as u64).collect();
        different.sort_unstable();
        different.dedup();
        assert!(different.len() > 100 && different[0] > 0);
        let recorded = schedule.recorded(Duration::from_secs(60));
        assert_eq!(recorded, Duration::from_secs(6));
    }

    #[test]
    fn a_short_recording_has_eight_bursts() {
        let lengths_s =
            [60.0, 20.0, 5.0, 1.0, 0.1].map(|seconds| default_burst_s(Some(seconds), 0.1));
        assert_eq!(lengths_s, [0.5, 0.25, 0.1, 0.025, 0.01]);
    }

    #[test]
    fn what_cannot_be_is_told_with_its_option() {
        let message = |seconds, duty, burst| schedule_of(seconds, duty, burst).unwrap_err().message;
        assert!(message(0.0, 0.1, 0.5).starts_with("--duration"));
        assert!(message(f64::NAN, 0.1, 0.5).starts_with("--duration"));
        assert!(message(1.0, 2.0, 0.5).starts_with("--duty"));
        assert!(message(1.0, 0.1, 1e9).starts_with("--burst"));
        assert!(message(1.0, 0.1, 10.0).contains("takes 100 s, and the recording 1 s"));
        assert!(message(60.0, 1e-5, 0.01).starts_with("--burst"));
        assert!(schedule_of(1.0, 1.0, 10.0).is_ok(), "bursts are cut");
        let limited = BurstSchedule::new(None, 0.1, 0.5, 1).unwrap_err().message;
        assert!(limited.starts_with("--limit"));
    }

    fn space(events: u64, bytes: u64) -> RecordingSpaceNeed {
        let schedule = schedule_of(60.0, 0.1, 0.5).unwrap();
        let trial = BurstSummary {
            clients: 1,
            events,
            bytes,
            length: Duration::from_millis(100),
        };
        RecordingSpaceNeed::expected(&trial, &schedule, Duration::from_secs(60))
    }

    #[test]
    fn space_follows_from_the_events_of_the_trial() {
        let busy = space(46_800, 2_000_000);
        assert_eq!((busy.expected_bytes, busy.waiting_bytes), (15_494_000, 0));
        assert!(busy.require(31_000_000).is_ok());
        let refused = busy.require(30_000_000).unwrap_err();
        assert_eq!(
            refused.message,
            "the recording needs 31.0 MB, and 30.0 MB are free"
        );
        assert!(busy.sentence().ends_with("about 15.5 MB"));
    }

    #[test]
    fn bursts_that_wait_in_files_are_counted_too() {
        let huge = space(500_000, 20_000_000);
        assert_eq!(huge.waiting_bytes, 456_000_000);
        let sentence = huge.sentence();
        assert!(sentence.contains("456.0 MB more until it is decoded"));
    }
}
