//! Stops a run that makes no progress, and names the cause.
//!
//! Rows that pass every check can still describe behaviour that no database has: turns that take no time, a
//! wait for an event that never comes.

use tierwise_device::Nanos;
use tierwise_work::TimeCategory;

use crate::kernel::task::TaskState;
use crate::program::Program;
use tierwise_recording::UserError;

/// Longest virtual time without an action of a session or a completion, in addition to the longest recorded
/// absence: even the slowest device answers within an hour.
const STALL_NS: Nanos = 3_600_000_000_000;
/// Most events and completions in a second of virtual time for each core at the recorded speed: 100 ns each. A
/// context switch takes several times as long.
const EVENTS_PER_S: f64 = 1e7;
/// Events that are always allowed, however little time they take.
const FREE_EVENTS: u64 = 2_000_000;
const FIX: &str = "record again; if it recurs, it is a defect of tierwise";

/// Progress of a run.
#[derive(Debug)]
pub(crate) struct ProgressWatch {
    events: u64,
    /// Time of the last action of a session or completion of a request.
    last_action_at: Nanos,
    stall_ns: Nanos,
    events_per_ns: f64,
}

/// Why a run is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HaltReason {
    Stalled,
    TooManyEvents,
}

impl ProgressWatch {
    pub(crate) fn new(program: &Program, cores: u32, cpu_speed: f64) -> Self {
        Self {
            events: 0,
            last_action_at: 0,
            stall_ns: STALL_NS.saturating_add(program.longest_away_ns),
            events_per_ns: EVENTS_PER_S / 1e9 * f64::from(cores) * cpu_speed.max(1.0),
        }
    }

    /// Notes that a session did something.
    pub(crate) fn note_action(&mut self, now: Nanos) {
        self.last_action_at = now;
    }

    /// Notes completed requests.
    pub(crate) fn note_completions(&mut self, now: Nanos, requests: usize) {
        self.events += requests as u64;
        self.last_action_at = now;
    }

    /// Counts an event.
    ///
    /// # Errors
    ///
    /// The run makes no progress.
    pub(crate) fn check_progress(
        &mut self,
        now: Nanos,
        tasks: &[TaskState],
    ) -> Result<(), UserError> {
        let halted = self.count_event(now);
        halted.map_err(|halt| UserError::new(describe_halt(halt, now, tasks), FIX))
    }

    /// Counts an event; whether the run still makes progress.
    fn count_event(&mut self, now: Nanos) -> Result<(), HaltReason> {
        self.events += 1;
        if now > self.last_action_at.saturating_add(self.stall_ns) {
            return Err(HaltReason::Stalled);
        }
        let many = self.events > FREE_EVENTS;
        if many && (self.events - FREE_EVENTS) as f64 > now as f64 * self.events_per_ns {
            return Err(HaltReason::TooManyEvents);
        }
        Ok(())
    }
}

/// The cause of the missing progress.
fn describe_halt(halt: HaltReason, now: Nanos, tasks: &[TaskState]) -> String {
    let after_s = now as f64 / 1e9;
    if halt == HaltReason::TooManyEvents {
        return format!(
            "the recorded work takes next to no time, as no database's does: more happened in the replay's \
             first {after_s:.3} s than the cores have time for"
        );
    }
    let waits = |task: &&TaskState| task.counts && !task.finished;
    let waiting: Vec<_> = tasks.iter().filter(waits).collect();
    let part = waiting
        .first()
        .map_or(TimeCategory::Other, |task| task.activity);
    format!(
        "the replay stands still: {} of its sessions never ended, the first of them in \"{}\"",
        waiting.len(),
        part.name()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress() -> ProgressWatch {
        ProgressWatch {
            events: 0,
            last_action_at: 0,
            stall_ns: STALL_NS,
            events_per_ns: EVENTS_PER_S / 1e9,
        }
    }

    #[test]
    fn many_events_at_once_are_borne_but_not_for_ever() {
        let mut run = progress();
        assert!((0..FREE_EVENTS).all(|_| run.count_event(5).is_ok()));
        assert_eq!(run.count_event(5), Err(HaltReason::TooManyEvents));
        assert_eq!(run.count_event(1_000_000_000), Ok(()));
    }

    #[test]
    fn who_does_nothing_for_long_stands_still() {
        let mut run = progress();
        assert_eq!(run.count_event(STALL_NS), Ok(()));
        assert_eq!(run.count_event(STALL_NS + 1), Err(HaltReason::Stalled));
        run.note_action(STALL_NS);
        assert_eq!(run.count_event(STALL_NS + 1), Ok(()));
    }
}
