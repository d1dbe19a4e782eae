//! Lets the server run before the database when it must, and not when it need not.
//!
//! At real-time priority, each request that arrives interrupts the thread that sends the next one: on two cores
//! that costs up to half of the requests of a deep queue. Without it, a server on a busy machine is late by
//! ticks of the scheduler. So the serving thread is an ordinary one of high weight, and a second thread looks
//! each millisecond whether an answer is overdue. If so, it makes the serving thread real-time for a while; for
//! longer, if it was late again soon after. While real-time, the serving thread sleeps where it would poll: nothing
//! else runs on the core of a real-time thread that polls, not even the reader whose request it has answered.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tierwise_device::Nanos;

use crate::clock;

/// The due time while nothing is inside the device.
const NEVER: Nanos = Nanos::MAX;

/// What the serving and the watching thread tell each other: when the next answer is due, and whether the serving
/// thread is real-time.
#[derive(Clone, Debug)]
pub(crate) struct ServingState(Arc<ServingPhase>);

#[derive(Debug)]
struct ServingPhase {
    due: AtomicU64,
    realtime: AtomicBool,
}

impl ServingState {
    pub fn new() -> Self {
        Self(Arc::new(ServingPhase {
            due: AtomicU64::new(NEVER),
            realtime: AtomicBool::new(false),
        }))
    }

    pub fn set_due(&self, due: Option<Nanos>) {
        self.0.due.store(due.unwrap_or(NEVER), Ordering::Relaxed);
    }

    fn due(&self) -> Nanos {
        self.0.due.load(Ordering::Relaxed)
    }

    pub fn is_realtime(&self) -> bool {
        self.0.realtime.load(Ordering::Relaxed)
    }

    /// Changes the priority of the serving thread. A refusal was reported when the watching thread asked for the
    /// same.
    fn change(&self, thread: libc::pid_t, change: PriorityChange) {
        let (policy, priority) = match change {
            PriorityChange::Raise => (libc::SCHED_FIFO, 1),
            PriorityChange::Lower => (libc::SCHED_OTHER, 0),
        };
        if set_scheduling_policy(thread, policy, priority).is_ok() {
            let realtime = change == PriorityChange::Raise;
            self.0.realtime.store(realtime, Ordering::Relaxed);
        }
    }
}

fn is_overdue(due: Nanos, now: Nanos) -> bool {
    due.checked_add(OVERDUE).is_some_and(|limit| now > limit)
}

/// Between two looks, and when nothing was inside for so many of them.
const PERIOD: Nanos = 1_000_000;
const IDLE_PERIOD: Nanos = 20_000_000;
const IDLE_LOOKS: u32 = 1_000;

/// An answer is overdue when it is later than a large request takes to be copied.
const OVERDUE: Nanos = 300_000;

/// First and longest time at real-time priority, and the time after it in which an overdue answer doubles it.
const FIRST_HOLD: Nanos = 100_000_000;
const LONGEST_HOLD: Nanos = 3_200_000_000;
const SOON: Nanos = 50_000_000;

/// How long the serving thread is to be real-time.
#[derive(Debug)]
struct RealTimeHold {
    until: Option<Nanos>,
    length: Nanos,
    ended: Nanos,
}

/// What to do with the serving thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PriorityChange {
    Raise,
    Lower,
}

impl RealTimeHold {
    fn new() -> Self {
        Self {
            until: None,
            length: FIRST_HOLD,
            ended: 0,
        }
    }

    fn look(&mut self, now: Nanos, is_overdue: bool) -> Option<PriorityChange> {
        match self.until {
            Some(until) if now >= until => {
                (self.until, self.ended) = (None, now);
                Some(PriorityChange::Lower)
            }
            None if is_overdue => {
                let soon = self.ended > 0 && now - self.ended < SOON;
                self.length = if soon {
                    (2 * self.length).min(LONGEST_HOLD)
                } else {
                    FIRST_HOLD
                };
                self.until = Some(now + self.length);
                Some(PriorityChange::Raise)
            }
            _ => None,
        }
    }
}

/// Watches over the thread with this number, for ever. Sends the system's refusals of its privileges once.
pub(crate) fn raise_priority_when_late(
    watched: &ServingState,
    served_by: libc::pid_t,
    refused: impl FnOnce(PrivilegeWarnings),
) -> ! {
    let mut warnings = PrivilegeWarnings::default();
    warnings.make_realtime();
    refused(warnings);
    let (mut hold, mut idle_looks) = (RealTimeHold::new(), 0);
    loop {
        let idle = idle_looks >= IDLE_LOOKS && hold.until.is_none();
        clock::sleep(if idle { IDLE_PERIOD } else { PERIOD });
        let (now, next) = (clock::monotonic_now(), watched.due());
        idle_looks = match next {
            NEVER => idle_looks.saturating_add(1),
            _ => 0,
        };
        if let Some(change) = hold.look(now, is_overdue(next, now)) {
            watched.change(served_by, change);
        }
    }
}

// Measures that keep the server on time: memory that is never swapped or waited for, and a thread that runs
// first.
//
// None of it is needed to be correct. A refusal by the system becomes a warning, and shows in the deadline
// overrun.

/// Collects the refusals.
#[derive(Default)]
pub struct PrivilegeWarnings(pub Vec<String>);

impl PrivilegeWarnings {
    fn check(&mut self, what: &str, status: libc::c_int) {
        if status != 0 {
            self.0
                .push(format!("{what}: {}", io::Error::last_os_error()));
        }
    }

    /// Locks all memory of the process, present and future, as it is first touched.
    pub fn lock_memory(&mut self) {
        let flags = libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT;
        // SAFETY: takes no pointers.
        self.check("memory is not locked", unsafe { libc::mlockall(flags) });
    }

    /// Lets the calling thread, and threads it starts, come before all others that are not real-time.
    pub fn raise_weight(&mut self) {
        // SAFETY: takes no pointers; process 0 means the calling thread.
        let status = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
        self.check("the server has no priority", status);
        self.sharpen_timers();
    }

    /// Gives the calling thread real-time priority, above that of [`crate::priority`]'s, and exact timers.
    pub fn make_realtime(&mut self) {
        if let Err(error) = set_scheduling_policy(0, libc::SCHED_FIFO, 2) {
            self.0.push(format!("nothing can be real-time: {error}"));
        }
        self.sharpen_timers();
    }

    fn sharpen_timers(&mut self) {
        // SAFETY: takes no pointers; the slack is in nanoseconds.
        self.check("timers are not exact", unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0)
        });
    }
}

/// Sets the scheduling policy of a thread by its number; 0 is the calling one.
pub fn set_scheduling_policy(
    thread: libc::pid_t,
    policy: libc::c_int,
    priority: libc::c_int,
) -> io::Result<()> {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the pointer is to a live structure.
    match unsafe { libc::sched_setscheduler(thread, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_late_again_is_real_time_for_longer() {
        let mut hold = RealTimeHold::new();
        assert_eq!(hold.look(1, false), None);
        let (mut now, mut lengths) = (10, Vec::new());
        for _ in 0..8 {
            assert_eq!(hold.look(now, true), Some(PriorityChange::Raise));
            assert_eq!(hold.look(now + 1, true), None);
            lengths.push(hold.length);
            now += hold.length;
            assert_eq!(hold.look(now, true), Some(PriorityChange::Lower));
            now += PERIOD;
        }
        assert_eq!(lengths[..3], [FIRST_HOLD, 2 * FIRST_HOLD, 4 * FIRST_HOLD]);
        assert_eq!(lengths[7], LONGEST_HOLD);
        assert_eq!(hold.look(now + SOON, true), Some(PriorityChange::Raise));
        assert_eq!(hold.length, FIRST_HOLD);
    }

    #[test]
    fn what_is_not_inside_is_never_overdue() {
        let watched = ServingState::new();
        assert!(!is_overdue(watched.due(), Nanos::MAX));
        watched.set_due(Some(5));
        let due = watched.due();
        assert!(!is_overdue(due, 5 + OVERDUE) && is_overdue(due, 6 + OVERDUE));
        watched.set_due(None);
        assert!(!is_overdue(watched.due(), Nanos::MAX - 1));
    }
}
