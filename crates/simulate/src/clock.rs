//! The CPU time of a thread.

/// CPU time that the calling thread has used, in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for one timespec.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "every Linux has this clock");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Adds up CPU time between starts and stops.
#[derive(Debug)]
pub(crate) struct CpuMeter {
    started_ns: u64,
    used_ns: u64,
}

impl CpuMeter {
    pub(crate) fn started() -> Self {
        Self {
            started_ns: thread_cpu_ns(),
            used_ns: 0,
        }
    }

    pub(crate) fn stop(&mut self) {
        self.used_ns += thread_cpu_ns() - self.started_ns;
    }

    pub(crate) fn start(&mut self) {
        self.started_ns = thread_cpu_ns();
    }

    pub(crate) fn used_ns(&self) -> u64 {
        self.used_ns
    }
}
