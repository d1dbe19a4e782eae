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

    /// Lets the calling thread, and threads it starts, come before all others that are not real-time.
    pub fn raise_weight(&mut self) {
        // SAFETY: takes no pointers; process 0 means the calling thread.
        let status = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
        self.check("the server has no priority", status);
        self.sharpen_timers();
    }

    /// Gives the calling thread real-time priority, above that of [`crate::priority`]'s, and exact timers.
    pub fn make_realtime(&mut self) {
        if let Err(error) = set_policy(0, libc::SCHED_FIFO, 2) {
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
pub fn set_policy(
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
