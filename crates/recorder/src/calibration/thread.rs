//! Threads that run where and when they disturb no other, and how they wait for each other asleep.

use std::io;
use std::mem::{size_of, zeroed};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A wait for a signal that does not come ends after this time: another program wants the core.
const LONGEST_WAIT_NS: i64 = 200_000_000;
/// Timers may be late by this much; the kernel's default is 50 µs.
const TIMER_SLACK_NS: libc::c_ulong = 1_000;
const LEAST_PRIORITY: libc::c_int = 19;

/// Cores that the caller may run on.
pub(super) fn allowed_cores() -> Vec<usize> {
    // SAFETY: a set of cores is plain bits, none of them set.
    let mut set: libc::cpu_set_t = unsafe { zeroed() };
    // SAFETY: the kernel fills a set of the size it is told.
    let status = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    let known = if status == 0 {
        libc::CPU_SETSIZE as usize
    } else {
        0
    };
    // SAFETY: the core is within the set.
    (0..known)
        .filter(|&core| unsafe { libc::CPU_ISSET(core, &set) })
        .collect()
}

/// Keeps the calling thread on one core, at idle priority.
pub(super) fn background(core: usize) -> io::Result<()> {
    // SAFETY: the structures are plain numbers; the kernel reads them, and the core is within the set.
    unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        libc::CPU_SET(core, &mut set);
        if libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) != 0 {
            return Err(io::Error::last_os_error());
        }
        let parameters: libc::sched_param = zeroed();
        if libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) != 0 {
            libc::setpriority(libc::PRIO_PROCESS, 0, LEAST_PRIORITY);
        }
        libc::prctl(libc::PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    }
    Ok(())
}

/// Monotonic time.
pub(super) fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC).as_nanos() as u64
}

/// Processor time of the calling thread.
pub(super) fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID).as_nanos() as u64
}

/// Processor time of this process.
pub(super) fn process_cpu() -> Duration {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel fills the structure; these clocks are always there.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A count that a thread can wait for asleep.
#[derive(Debug, Default)]
pub(super) struct Signal(AtomicU32);

impl Signal {
    /// The count.
    pub(super) fn count(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Counts, and wakes waiting threads.
    pub(super) fn raise(&self) {
        self.0.fetch_add(1, Ordering::Release);
        let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the address is that of a live word.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), operation, 1) };
    }

    /// Waits until it was raised more than `seen` times; returns whether it was, or it took too long.
    pub(super) fn wait_beyond(&self, seen: u32) -> bool {
        let longest = libc::timespec {
            tv_sec: 0,
            tv_nsec: LONGEST_WAIT_NS,
        };
        let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        while self.count() == seen {
            // SAFETY: the addresses are those of a live word and a live time.
            let status = unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.0.as_ptr(),
                    operation,
                    seen,
                    &raw const longest,
                )
            };
            let error = io::Error::last_os_error().raw_os_error();
            if status != 0 && error == Some(libc::ETIMEDOUT) {
                return false;
            }
        }
        true
    }
}
