//! What keeps the server on time: memory that is never swapped or waited for, and real-time threads.
//!
//! None of it is needed to be correct. What the system refuses becomes a warning, and shows in the lateness.

use std::io;

/// Priority of the threads that read from the kernel.
pub const READER_PRIORITY: i32 = 1;

/// Priority of the thread that answers.
pub const TIMER_PRIORITY: i32 = 2;

/// Collects what was refused.
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

    /// Gives the calling thread, and threads it starts, a real-time priority and exact timers.
    pub fn make_realtime(&mut self, priority: i32) {
        let parameters = libc::sched_param {
            sched_priority: priority,
        };
        // SAFETY: the pointer is to a live structure; thread 0 is the calling one.
        let status =
            unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
        self.check("threads are not real-time", status);
        // SAFETY: takes no pointers; the slack is in nanoseconds.
        self.check("timers are not exact", unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0)
        });
    }
}

/// Takes the real-time priority from the calling thread, which is not in a hurry.
pub fn make_ordinary() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: as in `make_realtime`; giving up a priority is never refused.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameters) };
}
