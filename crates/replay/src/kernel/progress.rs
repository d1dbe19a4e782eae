//! Whether a run gets anywhere. One that does not is given up, with what it hangs on.
//!
//! Rows that no check refuses can still say what no database does: turns that take no time, a wait for what never
//! comes. Whoever asks shall be told so, and not wait.

use tierwise_device::Nanos;
use tierwise_work::Part;

use crate::api::error::ReplayError;
use crate::kernel::session::SessionState;
use crate::program::prepared::Program;

/// So long after the last thing that a session did or a device answered, and the longest time that any is away,
/// nothing will come any more: the slowest of devices answers within an hour.
const STALL_NS: Nanos = 3_600_000_000_000;
/// Events and answers of devices for each core of the recorded speed in a second: 100 ns each. A switch from one
/// thread to another takes several times as long.
const EVENTS_PER_S: f64 = 1e7;
/// Events that are none too many, however little time they take.
const FREE_EVENTS: u64 = 2_000_000;
const FIX: &str = "record again; if it recurs, it is a defect of tierwise";

/// How far a run has come.
#[derive(Debug)]
pub(crate) struct Progress {
    events: u64,
    /// When a session did something last, or a device answered.
    last_action_at: Nanos,
    stall_ns: Nanos,
    events_per_ns: f64,
}

/// Why a run is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Halt {
    Stalled,
    TooManyEvents,
}

impl Progress {
    pub(crate) fn new(program: &Program, cores: u32, cpu_speed: f64) -> Self {
        Self {
            events: 0,
            last_action_at: 0,
            stall_ns: STALL_NS.saturating_add(program.longest_away_ns),
            events_per_ns: EVENTS_PER_S / 1e9 * f64::from(cores) * cpu_speed.max(1.0),
        }
    }

    /// A session does something.
    pub(crate) fn note_action(&mut self, now: Nanos) {
        self.last_action_at = now;
    }

    /// A device answers so many requests.
    pub(crate) fn note_completions(&mut self, now: Nanos, requests: usize) {
        self.events += requests as u64;
        self.last_action_at = now;
    }

    /// Something happens now; why the run is given up, if it is.
    pub(crate) fn check_progress(
        &mut self,
        now: Nanos,
        sessions: &[SessionState],
    ) -> Result<(), ReplayError> {
        let halted = self.count_event(now);
        halted.map_err(|halt| ReplayError::new(describe(halt, now, sessions), FIX))
    }

    /// Something happens; whether that gets anywhere.
    fn count_event(&mut self, now: Nanos) -> Result<(), Halt> {
        self.events += 1;
        if now > self.last_action_at.saturating_add(self.stall_ns) {
            return Err(Halt::Stalled);
        }
        let many = self.events > FREE_EVENTS;
        if many && (self.events - FREE_EVENTS) as f64 > now as f64 * self.events_per_ns {
            return Err(Halt::TooManyEvents);
        }
        Ok(())
    }
}

/// What a run hangs on.
fn describe(halt: Halt, now: Nanos, sessions: &[SessionState]) -> String {
    let after_s = now as f64 / 1e9;
    if halt == Halt::TooManyEvents {
        return format!(
            "the recorded work takes next to no time, as no database's does: more happened in the replay's \
             first {after_s:.3} s than the cores have time for"
        );
    }
    let waits = |session: &&SessionState| session.counts && !session.finished;
    let waiting: Vec<_> = sessions.iter().filter(waits).collect();
    let part = waiting
        .first()
        .map_or(Part::Other, |session| session.activity);
    format!(
        "the replay stands still: {} of its sessions never ended, the first of them in \"{}\"",
        waiting.len(),
        part.name()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress() -> Progress {
        Progress {
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
        assert_eq!(run.count_event(5), Err(Halt::TooManyEvents));
        assert_eq!(run.count_event(1_000_000_000), Ok(()));
    }

    #[test]
    fn who_does_nothing_for_long_stands_still() {
        let mut run = progress();
        assert_eq!(run.count_event(STALL_NS), Ok(()));
        assert_eq!(run.count_event(STALL_NS + 1), Err(Halt::Stalled));
        run.note_action(STALL_NS);
        assert_eq!(run.count_event(STALL_NS + 1), Ok(()));
    }
}
