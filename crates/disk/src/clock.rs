//! The clock that drives the live disk's model.

use tierwise_device::Nanos;

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub fn monotonic_now() -> Nanos {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a live timespec, and this clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos
}

/// Seconds of processor time that this process has used.
pub fn process_cpu_s() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: as above.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Sleeps for a time; a signal may end it early.
pub fn sleep(time: Nanos) {
    let time = timespec_of_nanos(time);
    // SAFETY: the pointer is to a live timespec; the rest of an interrupted sleep is not asked for.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
}

/// The time that is left until a moment, for the system.
pub fn timespec_until(moment: Nanos) -> libc::timespec {
    timespec_of_nanos(moment.saturating_sub(monotonic_now()))
}

/// A length of time for the system.
fn timespec_of_nanos(time: Nanos) -> libc::timespec {
    libc::timespec {
        tv_sec: (time / 1_000_000_000) as _,
        tv_nsec: (time % 1_000_000_000) as _,
    }
}
