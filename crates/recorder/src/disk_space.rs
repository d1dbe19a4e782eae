//! Disk space that a recording takes.

use crate::tracer::BurstSummary;

use crate::RecordError;
use crate::schedule::Schedule;

/// A recording ends early when it has reached this size, by default.
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
pub struct DiskSpace {
    /// In the end.
    pub expected_bytes: u64,
    /// Besides that while it runs, in files without names.
    pub waiting_bytes: u64,
}

impl DiskSpace {
    /// By the events of a trial.
    pub fn expected(trial: &BurstSummary, schedule: &Schedule) -> Self {
        let per_s = |count: u64| count as f64 / trial.length.as_secs_f64().max(1e-3);
        let recorded_s = schedule.recorded().as_secs_f64();
        let burst = per_s(trial.bytes) * schedule.burst.as_secs_f64();
        let waiting = (per_s(trial.bytes) * recorded_s).min(MOST_WAITING + 2.0 * burst);
        Self {
            expected_bytes: (EMPTY_BYTES + recorded_s * per_s(trial.events) * EVENT_BYTES) as u64,
            waiting_bytes: if burst > LARGEST_IN_MEMORY {
                waiting as u64
            } else {
                0
            },
        }
    }

    /// Refuses a file system that has too little left.
    pub fn require(&self, free_bytes: u64) -> Result<(), RecordError> {
        let needed = SAFETY * self.expected_bytes + self.waiting_bytes;
        if free_bytes >= needed {
            return Ok(());
        }
        Err(RecordError::new(
            format!(
                "the recording needs {}, and {} are free",
                megabytes(needed),
                megabytes(free_bytes)
            ),
            "name a directory on another file system, or record for a shorter time",
        ))
    }

    pub fn sentence(&self, limit_bytes: u64) -> String {
        let expected = megabytes(self.expected_bytes);
        let waiting = match self.waiting_bytes {
            0 => String::new(),
            bytes => format!(", {} more until it is decoded", megabytes(bytes)),
        };
        let limit = megabytes(limit_bytes);
        format!("the recording will take about {expected}{waiting}; it ends early at {limit}")
    }
}

pub fn size_of(events: u64) -> u64 {
    (events as f64 * EVENT_BYTES) as u64
}

/// A size in words.
#[must_use]
pub fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn space(events: u64, bytes: u64) -> DiskSpace {
        let schedule = Schedule::new(60.0, 0.1, 0.5).unwrap();
        let trial = BurstSummary {
            clients: 1,
            events,
            bytes,
            length: Duration::from_millis(100),
        };
        DiskSpace::expected(&trial, &schedule)
    }

    #[test]
    fn space_follows_from_the_events_of_the_trial() {
        let busy = space(46_800, 2_000_000);
        assert_eq!(
            busy,
            DiskSpace {
                expected_bytes: 15_494_000,
                waiting_bytes: 0
            }
        );
        assert!(busy.require(31_000_000).is_ok());
        let refused = busy.require(30_000_000).unwrap_err();
        assert_eq!(
            refused.message,
            "the recording needs 31.0 MB, and 30.0 MB are free"
        );
        assert!(
            busy.sentence(1_000_000_000)
                .ends_with("about 15.5 MB; it ends early at 1000.0 MB")
        );
    }

    #[test]
    fn bursts_that_wait_in_files_are_counted_too() {
        let huge = space(500_000, 20_000_000);
        assert_eq!(huge.waiting_bytes, 456_000_000);
        assert!(
            huge.sentence(0)
                .contains("456.0 MB more until it is decoded")
        );
    }
}
