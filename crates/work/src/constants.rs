//! Model constants that no recording shows: value, unit (the end of the name; a share is between 0 and 1) and
//! source, with the machine of the measurement. `benchmarks/sensitivity.py` measures the effect of each on
//! predictions; the table is in docs/evidence/replay.md. Formats, kernel defaults and memory limits are
//! defined where they are used.

/// A model constant; the feature `sensitivity` can scale one of them.
#[derive(Clone, Copy, Debug)]
pub struct ModelConstant<T> {
    #[cfg(feature = "sensitivity")]
    name: &'static str,
    value: T,
}

macro_rules! constants {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $value:expr;)*) => {
        $(
            $(#[$doc])*
            pub const $name: ModelConstant<$type> = ModelConstant {
                #[cfg(feature = "sensitivity")]
                name: stringify!($name),
                value: $value,
            };
        )*
    };
}

constants! {
    // Times that part causes
    /// A thread that something wakes runs again, and does what it was woken for, within this time on its core: it leads the
    /// flush that did not cover it, wakes the next waiter, sends the read that it faults for. What is further apart has
    /// another cause. Measured: 9 to 14 µs at the median, 99 µs at the 99th percentile, 143 µs at most where cores idle
    /// between flushes of 8 ms; PostgreSQL and MariaDB, 2 cores of an EPYC in a virtual machine.
    WOKEN_NS: u64 = 100_000;
    /// What is closer together than this happens at once: writes of one commit, a request's end and the wake-up for it,
    /// the hand-over to a helper. Chosen: two wake-ups.
    AT_ONCE_NS: u64 = 20_000;
    /// A thread that waits longer than this sleeps: a background thread's turn ends there, and a retry that is so late
    /// was cut by a burst's edge. Chosen: longer than a hand-over, shorter than a sleep.
    PAUSE_NS: u64 = 1_000_000;
    /// Without requests and commits, a turn is cut after this time. Chosen: longer than most transactions, shorter
    /// than a burst.
    EVEN_TURN_NS: u64 = 10_000_000;
    /// Delay from the flush to a waiter's start, if none was seen. Measured: 3 to 8 µs from a sync's end to
    /// its waiters' start, PostgreSQL, 2 cores of an EPYC in a virtual machine.
    WAITER_WAKE_NS: u64 = 6_000;
    /// Processor time of a session that wakes, sees that it was not covered, and requests the lock again.
    /// Used where the host was not measured. A semaphore's wakeup and a compare-and-swap, of the measured 3
    /// to 8 µs from a sync's end to its waiters' start, 2 cores of an EPYC in a virtual machine.
    RECHECK_NS: u64 = 2_000;
    // Shares that part rules from chance
    /// More often than not. By definition.
    MAJORITY_SHARE: f64 = 0.5;
    /// A rule with at most this share of exceptions holds; a logarithm of two counts' ratio by which one is nearer. Chosen:
    /// bursts cut what lies at their edges.
    EXCEPTIONS_SHARE: f64 = 0.1;
    /// A smaller part changes no answer beyond its interval: of reads, of a count, of sessions' waits. Chosen.
    FEW_SHARE: f64 = 0.05;
    /// What happens in at most this share of cases is chance: commits of a statement that does not commit, the work of an
    /// observer among clients. Chosen.
    CHANCE_SHARE: f64 = 0.02;
    /// A lock, a helper, a worker or a background thread with less than this share of the time is left out. Chosen.
    LEAST_TIME_SHARE: f64 = 0.002;
    /// If this share of the turns of one shape commits visibly, all of them commit. Chosen: commits share
    /// flushes, so only some are seen.
    COMMITS_SHARE: f64 = 0.3;
    /// Least plausible ratio of the rate with recording to the rate without. Chosen: 0.75 to 0.87 were
    /// measured within bursts, PostgreSQL, 2 cores of an EPYC in a virtual machine.
    RECORDED_LEAST_RATIO: f64 = 0.6;
    /// Largest ratio of the upper to the lower end of that interval for it to be informative. Chosen.
    RECORDED_MOST_WIDTH: f64 = 1.5;
    // Processor time
    /// Processor time that runs on a core cost more for each e-fold of its pause. Measured: pgbench at rates from 100/s
    /// to saturation, PostgreSQL 15, 2 cores of an EPYC in a virtual machine.
    COLD_STEP_NS: f64 = 14_000.0;
    /// Pauses of a core that cost little. As [`COLD_STEP_NS`].
    COLD_NS: f64 = 120_000.0;
    /// Most that a run can pay for a cold core, over its time on a warm one. As [`COLD_STEP_NS`], look-ups.
    COLD_MOST: f64 = 5.0;
    /// What a hand-over takes longer, from waking a thread until it runs, if its core was idle and another than the
    /// waker's. Measured: 13 to 20 µs, one client of PostgreSQL 15 with six statements, nothing recorded; 29 µs while
    /// recorded; 2 cores of an EPYC in a virtual machine.
    HANDED_OVER_NS: u64 = 17_000;
    /// An idle virtual processor can be woken for a thread until its host stops to poll for it. KVM's default,
    /// `halt_poll_ns`.
    AWAKE_NS: u64 = 200_000;
    /// Above this many busy cores on average, the kernel spreads threads over idle ones. Chosen: between 0.4, where
    /// threads stayed together, and 0.7, where they did not.
    SPREAD_BUSY_CORES: f64 = 0.5;
    /// Processor time of a thread for a direct request: part of the measured path, and of the thread's own recorded
    /// time. Measured: 9 to 13 µs for reads of an emulated NVMe SSD, 12 to 17 of a network volume, 2 cores of an
    /// EPYC in a virtual machine.
    REQUEST_CPU_NS: u64 = 12_000;
    /// Path latency that an emulated disk's server subtracts, where the recording has none. Measured when the
    /// disk was made: 14 to 60 µs on 107 disks, 57 in the median, a quiet machine
    /// (python/tierwise/host/disk/attainable_rates.py).
    PATH_NS: u64 = 57_000;
    // Storage and page cache
    /// Least share of the memory left by processes that held pages of files. Chosen: the kernel's own memory
    /// is less.
    CACHE_SURE_SHARE: f64 = 0.8;
    /// Time of a request where none was recorded. The order of a SATA SSD's read.
    UNOBSERVED_NS: u64 = 100_000;
}

#[cfg(not(feature = "sensitivity"))]
impl<T: Copy> ModelConstant<T> {
    /// Its value.
    #[must_use]
    #[inline]
    pub const fn get(self) -> T {
        self.value
    }
}

#[cfg(feature = "sensitivity")]
pub use scaled::scale;

#[cfg(feature = "sensitivity")]
mod scaled {
    use std::sync::OnceLock;

    use super::ModelConstant;

    static SCALED: OnceLock<(String, f64)> = OnceLock::new();

    /// Scales one constant for the life of the process; values already scaled stay scaled.
    pub fn scale(name: &str, factor: f64) {
        SCALED.get_or_init(|| (name.to_owned(), factor));
    }

    fn factor(name: &str) -> f64 {
        let scaled = SCALED.get().filter(|(scaled, _)| scaled == name);
        scaled.map_or(1.0, |(_, factor)| *factor)
    }

    impl ModelConstant<f64> {
        /// Its value, scaled.
        #[must_use]
        pub fn get(self) -> f64 {
            self.value * factor(self.name)
        }
    }

    impl ModelConstant<u64> {
        /// Its value, scaled.
        #[must_use]
        pub fn get(self) -> u64 {
            (self.value as f64 * factor(self.name)) as u64
        }
    }
}
