//! Measures that keep the server on time: memory that is never swapped or waited for, and a thread that runs
//! first.
//!
//! None of it is needed to be correct. A refusal by the system becomes a warning, and shows in the deadline
//! overrun.

use std::io;

/// Collects the refusals.
#[derive(Default)]
pub struct Warnings(pub Vec<String>);

impl Warnings {
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

    /// Gives the calling thread real-time priority and exact timers.
    pub fn make_realtime(&mut self) {
        let parameters = libc::sched_param { sched_priority: 1 };
        // SAFETY: the pointer is to a live structure; thread 0 is the calling one.
        let status =
            unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
        self.check("the server is not real-time", status);
        // SAFETY: takes no pointers; the slack is in nanoseconds.
        self.check("timers are not exact", unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0)
        });
    }
}
