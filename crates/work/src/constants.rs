//! Model constants that no recording shows: value, unit (the end of the name; a share is between 0 and 1) and
//! source, with the machine of the measurement. `benchmarks/sensitivity.py` measures the effect of each on
//! predictions; the table is in docs/evidence/replay.md. Formats, kernel defaults and memory limits are
//! defined where they are used.

/// A model constant; the feature `sensitivity` can scale one of them.
#[derive(Clone, Copy, Debug)]
pub struct Constant<T> {
    #[cfg(feature = "sensitivity")]
    name: &'static str,
    value: T,
}

macro_rules! constants {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $value:expr;)*) => {
        $(
            $(#[$doc])*
            pub const $name: Constant<$type> = Constant {
                #[cfg(feature = "sensitivity")]
                name: stringify!($name),
                value: $value,
            };
        )*
    };
}

constants! {
    // Waits and wakeups
    /// A waiting thread continues within this time after the end of its wait's cause. Chosen: several times a
    /// slow wakeup of an idle core, a small part of a read from a disk.
    WOKEN_NS: u64 = 100_000;
    /// A wakeup is reported at most this long before the end of the request that caused it. Chosen: a fifth
    /// of [`WOKEN_NS`].
    EARLY_NS: u64 = WOKEN_NS.value / 5;
    /// A faulting thread sends its request at most this long before it waits. Chosen: twice [`WOKEN_NS`].
    FAULT_NS: u64 = 200_000;
    /// Delay from the flush to a waiter's start, if none was seen. Measured: 3 to 8 µs from a sync's end to
    /// its waiters' start, PostgreSQL, 2 cores of an EPYC in a virtual machine.
    WAITER_WAKE_NS: u64 = 6_000;
    /// Processor time of a session that wakes, sees that it was not covered, and requests the lock again.
    /// Used where the host was not measured. A semaphore's wakeup and a compare-and-swap, of the measured 3
    /// to 8 µs from a sync's end to its waiters' start, 2 cores of an EPYC in a virtual machine.
    RECHECK_NS: u64 = 2_000;
    // Commits and flushes of the log
    /// A wakeup belongs to a flush if its leader ran for at most this time since the flush ended. Limit; measured
    /// until the first wakeup: 9 µs at the median, 17 µs at the 97th percentile, more where the machine is
    /// crowded; PostgreSQL, 2 cores of an EPYC in a virtual machine.
    FIRST_WAKE_NS: u64 = 100_000;
    /// Most time on a core between the wakeups of one chain. Measured: 4.5 µs at the median, 12 µs at the 97th
    /// percentile; PostgreSQL, 2 cores of an EPYC in a virtual machine.
    NEXT_WAKE_NS: u64 = 60_000;
    /// Most time on a core between parts of one commit (woken, not covered, waiting once more or leading
    /// itself). Measured: 3 to 14 µs at the median, 99 µs at the 99th percentile, 143 µs at most where
    /// cores idle between flushes of 8 ms; PostgreSQL and MariaDB, 2 cores of an EPYC in a virtual machine.
    SAME_COMMIT_NS: u64 = 150_000;
    /// A thread that was woken too early leads or waits again within this time on a core. As
    /// [`SAME_COMMIT_NS`].
    TOO_EARLY_NS: u64 = SAME_COMMIT_NS.value;
    /// If a larger share of one file's flushes overlap, no commit waits for another's flush. Chosen: one by
    /// one, or at will.
    OVERLAPPING_MOST_SHARE: f64 = 0.1;
    /// Largest share of early-woken threads that wait again if the leader wakes only the next leader; if it
    /// wakes all, most wait again. Chosen: the rest is chance, a thread may wait for something else that the
    /// leader held.
    WAITING_AGAIN_MOST_SHARE: f64 = 0.1;
    /// Largest distance between writes of one commit. Chosen.
    COMMIT_WRITES_NS: u64 = 20_000;
    /// Most time between a flush of the log and the wait for its second copy, however many waiters continue.
    /// Chosen: as [`FIRST_WAKE_NS`].
    BOTH_COPIES_NS: u64 = 100_000;
    /// Commits wait for a copy if its sender ends this many waits of sessions per flush of the copy. Chosen:
    /// more often than not.
    REPLICA_WAITED_SHARE: f64 = 0.5;
    // Transactions and sessions
    /// If this share of the turns of one shape commits visibly, all of them commit. Chosen: commits share
    /// flushes, so only some are seen.
    COMMITS_SHARE: f64 = 0.3;
    /// One way to count transactions is more likely than another if it is this much nearer to their number.
    /// Chosen.
    MORE_LIKELY_LN: f64 = 0.1;
    /// A shape that shows a commit this often may be the COMMIT statement. Chosen: more often than not.
    COMMIT_WORD_SHARE: f64 = 0.5;
    /// The BEGIN statement shows a commit at most this often. Chosen: chance.
    BEGIN_WORD_MOST_SHARE: f64 = 0.02;
    /// Share of neighbours in the sequence of BEGIN and COMMIT that differ. Chosen: all but a few that a
    /// burst's edge cut.
    ALTERNATES_SHARE: f64 = 0.95;
    /// Largest share of visible commits among turns that never commit. Chosen: chance.
    NEVER_COMMITS_SHARE: f64 = 0.02;
    /// Counts that differ by more than this count different things. Chosen.
    COUNTED_MOST_OFF_SHARE: f64 = 0.05;
    /// Least plausible ratio of the rate with recording to the rate without. Chosen: 0.75 to 0.87 were
    /// measured within bursts, PostgreSQL, 2 cores of an EPYC in a virtual machine.
    RECORDED_LEAST_RATIO: f64 = 0.6;
    /// Largest ratio of the upper to the lower end of that interval for it to be informative. Chosen.
    RECORDED_MOST_WIDTH: f64 = 1.5;
    /// A session that is busy for less than this share of the mean of all sessions is an observer, not a
    /// client; a session without commits is compared with the busiest. Chosen: monitoring queries are rare.
    SESSION_LEAST_SHARE: f64 = 0.02;
    /// A thread is a session's client if it ended this share of the session's waits for a client. Chosen: all
    /// but those that a burst's edge cut.
    OWN_CLIENT_SHARE: f64 = 0.9;
    /// Without requests and commits, a turn is cut after this time. Chosen: longer than most transactions, shorter
    /// than a burst.
    EVEN_TURN_NS: u64 = 10_000_000;
    // Locks and helpers
    /// A lock that is not kept over the commit is released within this time before the commit's flush.
    /// Chosen: the rest of a statement.
    LOCK_RELEASE_NS: u64 = 100_000;
    /// Least share of the sessions' time for waits to count as a hot lock held over the commit. Chosen.
    HELD_LOCK_LEAST_SHARE: f64 = 0.002;
    /// The same for a lock released before the commit. Any lock that a session releases shortly before it
    /// commits may be mistaken for one. Chosen: five times as much.
    RELEASED_LOCK_LEAST_SHARE: f64 = 0.01;
    /// Least share of the sessions' time spent waiting for all background threads together for them to be
    /// helpers. Chosen.
    HELPERS_LEAST_SHARE: f64 = 0.05;
    /// The same for one background thread. Chosen.
    HELPER_LEAST_SHARE: f64 = 0.005;
    /// Shorter waits for a helper count as hand-overs without a cost. Chosen: two wakeups.
    HELPER_LEAST_NS: u64 = 20_000;
    /// Workers whose reads take less than this share of the sessions' time are ignored. Chosen.
    IO_WORKER_LEAST_SHARE: f64 = 0.01;
    /// A sleep of SQLite's busy handler that was late by more than this was cut by a burst's edge. Chosen:
    /// ten times the kernel's timer slack.
    BUSY_MOST_LATE_NS: u64 = 500_000;
    /// A wait of this length, for nothing that the thread itself requested, ends a turn of a background
    /// thread. Chosen: longer than a hand-over, shorter than a sleep.
    BACKGROUND_IDLE_NS: u64 = 1_000_000;
    /// A thread that runs for less than this share of the time and moves no data is left out. Chosen.
    BACKGROUND_LEAST_SHARE: f64 = 0.0005;
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
    /// (python/tierwise/host/disk/attainable.py).
    PATH_NS: u64 = 57_000;
    // Storage and page cache
    /// A cache size is as good as the best if it leaves at most this much more unexplained, as a share of the
    /// reads that missed. Chosen.
    CACHE_SIZE_TOLERANCE_SHARE: f64 = 0.05;
    /// Least share of the memory left by processes that held pages of files. Chosen: the kernel's own memory
    /// is less.
    CACHE_SURE_SHARE: f64 = 0.8;
    /// Largest accepted share of reads that no call shows. Chosen.
    UNSEEN_MOST_SHARE: f64 = 0.05;
    /// Caches were empty at the start if they answered less than this share of the first uses that full ones
    /// would have answered. Chosen: more often than not.
    COLD_CACHE_SHARE: f64 = 0.5;
    /// Least share of a role's reads without a wait if it is read through the page cache. Chosen.
    READ_AHEAD_LEAST_SHARE: f64 = 0.05;
    /// Sizes from this share of a request's to its inverse are similar. Chosen: less than a doubling.
    SIMILAR_SIZE_SHARE: f64 = 0.6;
    /// Time of a request where none was recorded. The order of a SATA SSD's read.
    UNOBSERVED_NS: u64 = 100_000;
}

#[cfg(not(feature = "sensitivity"))]
impl<T: Copy> Constant<T> {
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

    use super::Constant;

    static SCALED: OnceLock<(String, f64)> = OnceLock::new();

    /// Scales one constant for the life of the process; values already scaled stay scaled.
    pub fn scale(name: &str, factor: f64) {
        SCALED.get_or_init(|| (name.to_owned(), factor));
    }

    fn factor(name: &str) -> f64 {
        let scaled = SCALED.get().filter(|(scaled, _)| scaled == name);
        scaled.map_or(1.0, |(_, factor)| *factor)
    }

    impl Constant<f64> {
        /// Its value, scaled.
        #[must_use]
        pub fn get(self) -> f64 {
            self.value * factor(self.name)
        }
    }

    impl Constant<u64> {
        /// Its value, scaled.
        #[must_use]
        pub fn get(self) -> u64 {
            (self.value as f64 * factor(self.name)) as u64
        }
    }
}
