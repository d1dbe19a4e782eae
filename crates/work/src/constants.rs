//! Figures of the model that no recording tells: value, unit (the end of the name; a share is between 0 and 1), and
//! where each comes from, with the machine where it was measured. What predictions owe to each is measured by
//! `benchmarks/sensitivity.py`; the table is in docs/evidence/replay.md. Formats, defaults of the kernel and bounds of memory are
//! no such figures: they stand where they are used.

/// A figure; under the feature `sensitivity` one of them can be scaled.
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
    // Waits and wakings
    /// A thread goes on within this time after what it waited for. Chosen: several times a slow waking of an idle
    /// core, a small part of a read from a disk.
    WOKEN_NS: u64 = 100_000;
    /// A waking is told at most this long before the end of the request that caused it. Chosen: a fifth of [`WOKEN_NS`].
    EARLY_NS: u64 = WOKEN_NS.value / 5;
    /// A thread that faults sends its request at most this long before it waits. Chosen: twice [`WOKEN_NS`].
    FAULT_NS: u64 = 200_000;
    /// A thread that runs this soon after another lost the core preempted it. Chosen: a context switch and the cost of
    /// two events.
    PREEMPTED_NS: u64 = 3_000;
    /// Switches on two cores within this time belong together. Chosen: a context switch and the cost of two events.
    TOGETHER_NS: u64 = 3_000;
    /// Largest share of a CPU burst that its wakeup may take. Chosen: something was done in it.
    WAKEUP_MOST_SHARE: f64 = 0.8;
    /// A waiter runs again this long after the flush if none was seen that did. Measured: 3 to 8 µs from a sync's end
    /// to its waiters' start, PostgreSQL, 2 cores of an EPYC in a virtual machine.
    WAITER_WAKE_NS: u64 = 6_000;
    /// Processor time of a session that wakes, sees that it was not covered, and requests the lock again, where the
    /// host was not measured. A semaphore's wake-up and a compare-and-swap, of the measured 3 to 8 µs from a sync's end
    /// to its waiters' start, 2 cores of an EPYC in a virtual machine.
    RECHECK_NS: u64 = 2_000;
    // Commits and flushes of the log
    /// Time on a core from the end of a flush until the leader wakes the first that waited for it. Measured: 9 µs at
    /// the median, 17 µs at the 97th percentile, more where the machine is crowded; PostgreSQL, 2 cores of an EPYC in
    /// a virtual machine.
    FIRST_WAKE_NS: u64 = 100_000;
    /// Time on a core between the wakings of one chain. Measured: 4.5 µs at the median, 12 µs at the 97th percentile;
    /// PostgreSQL, 2 cores of an EPYC in a virtual machine.
    NEXT_WAKE_NS: u64 = 60_000;
    /// Between parts of one commit (woken, not covered, waiting once more or leading oneself) lies less time on a core
    /// than this. Measured: 3 to 14 µs at the median, 99 µs at the 99th percentile, 143 µs at most where cores idle
    /// between flushes of 8 ms; PostgreSQL and MariaDB, 2 cores of an EPYC in a virtual machine.
    SAME_COMMIT_NS: u64 = 150_000;
    /// A thread that was woken too early leads or waits once more within this time on a core. As [`SAME_COMMIT_NS`].
    TOO_EARLY_NS: u64 = SAME_COMMIT_NS.value;
    /// Where more of the flushes of one file overlap, nobody waits for another's. Chosen: one by one, or at will.
    OVERLAPPING_MOST_SHARE: f64 = 0.1;
    /// Where the leader wakes one thread to lead next and the others sleep on, no more of those woken too early than
    /// this wait once more; where it wakes all, most do. Chosen: the rest is chance, a thread may wait for something
    /// else that the leader held.
    WAITING_AGAIN_MOST_SHARE: f64 = 0.1;
    /// Writes of one commit lie no further apart than this. Chosen.
    COMMIT_WRITES_NS: u64 = 20_000;
    /// Between a flush of the log and the wait for its second copy lies less than this, however many are let go on.
    /// Chosen: as [`FIRST_WAKE_NS`].
    BOTH_COPIES_NS: u64 = 100_000;
    /// Commits wait for a copy if so many waits of sessions, for each of its flushes, are ended by its sender. Chosen:
    /// more often than not.
    REPLICA_WAITED_SHARE: f64 = 0.5;
    /// Fewer of all commits than this share that made the log longer are taken for chance. Chosen: the file system
    /// writes its journal now and then.
    WAL_GROWING_SHARE: f64 = 0.01;
    /// Processor time of looking for room, of a commit beyond the end of SQLite's log, where the recording does not
    /// tell. Measured: 67 less 30.5 µs in the flush at the median; crud on an emulated SSD, ext4, 2 cores of an EPYC
    /// in a virtual machine.
    WAL_GROWING_NS: f64 = 36_500.0;
    /// The same, of each of its frames. Measured: 12.7 less 3.8 µs in the writes of a frame; as [`WAL_GROWING_NS`].
    WAL_FRAME_NS: f64 = 8_900.0;
    /// Frames of a gap that a page is given on top of those seen. Chosen: one page that came last by chance is not one
    /// that always does.
    WAL_PRIOR_FRAMES: f64 = 40.0;
    // Transactions and sessions
    /// Turns of one shape of which this share commits visibly are commits, all of them. Chosen: flushes are shared, so
    /// that only some commits are seen.
    COMMITS_SHARE: f64 = 0.3;
    /// One way to count transactions is more likely than another if it is nearer to their number by so much. Chosen.
    MORE_LIKELY_LN: f64 = 0.1;
    /// A shape that shows a commit so often may be the word that commits. Chosen: more often than not.
    COMMIT_WORD_SHARE: f64 = 0.5;
    /// The word that begins shows a commit no more often than this. Chosen: chance.
    BEGIN_WORD_MOST_SHARE: f64 = 0.02;
    /// Share of neighbours in the sequence of both words that are unlike each other. Chosen: all but a few that a
    /// burst's edge cut.
    ALTERNATES_SHARE: f64 = 0.95;
    /// Turns that never commit show no more commits than this. Chosen: chance.
    NEVER_COMMITS_SHARE: f64 = 0.02;
    /// Counts that differ by more than this count different things. Chosen.
    COUNTED_MOST_OFF_SHARE: f64 = 0.05;
    /// Recording is believed to slow its target by no more than this. Chosen: 0.75 to 0.87 were measured within
    /// bursts, PostgreSQL, 2 cores of an EPYC in a virtual machine.
    RECORDED_LEAST_RATIO: f64 = 0.6;
    /// The upper end of the interval of that over the lower, where it says anything. Chosen.
    RECORDED_MOST_WIDTH: f64 = 1.5;
    /// A session is an observer, not a client, if it is busy for less than this share of the mean of all sessions; one
    /// without commits, of the busiest. Chosen: monitoring asks rarely.
    SESSION_LEAST_SHARE: f64 = 0.02;
    /// A thread is a session's client if it ended this share of the waits for one. Chosen: all but what a burst's edge
    /// cut.
    OWN_CLIENT_SHARE: f64 = 0.9;
    /// Without requests and commits, a turn is cut after this time. Chosen: longer than most transactions, shorter
    /// than a burst.
    EVEN_TURN_NS: u64 = 10_000_000;
    /// The spread of exposures below which nothing can be told, as their standard deviation. Chosen.
    COLDNESS_LEAST_SPREAD: f64 = 0.02;
    /// The most that a cold core was ever seen to cost. Measured: as [`WARMUP_SCALE_NS`].
    COLDNESS_MOST_NS: f64 = 2_000_000.0;
    // Locks and helpers
    /// A lock is released within this time before the flush of a commit that does not keep it. Chosen: a statement's
    /// rest.
    LOCK_RELEASE_NS: u64 = 100_000;
    /// Waits that take less than this share of the sessions' time are no hot lock that is held over the commit. Chosen.
    HELD_LOCK_LEAST_SHARE: f64 = 0.002;
    /// The same of a lock that is released before the commit, for which any lock may be taken that a session gives
    /// back shortly before it commits. Chosen: five times as much.
    RELEASED_LOCK_LEAST_SHARE: f64 = 0.01;
    /// Least share of the sessions' time spent waiting for all background threads together, from which on they may be
    /// helpers. Chosen.
    HELPERS_LEAST_SHARE: f64 = 0.05;
    /// The same, for one of them. Chosen.
    HELPER_LEAST_SHARE: f64 = 0.005;
    /// Shorter waits for a helper are taken for hand-overs without a cost. Chosen: two wakings.
    HELPER_LEAST_NS: u64 = 20_000;
    /// Workers whose reads take less than this share of the sessions' time are ignored. Chosen.
    IO_WORKER_LEAST_SHARE: f64 = 0.01;
    /// A sleep of SQLite's busy handler that took longer than this on top was cut by a burst's edge. Chosen: ten times
    /// the kernel's timer slack.
    BUSY_MOST_LATE_NS: u64 = 500_000;
    /// A wait that long, for nothing that the thread itself asked, ends a turn of a background thread. Chosen: longer
    /// than a hand-over, shorter than a nap.
    BACKGROUND_IDLE_NS: u64 = 1_000_000;
    /// A thread that runs for less than this share of the time and moves no data is left out. Chosen.
    BACKGROUND_LEAST_SHARE: f64 = 0.0005;
    // Processor time
    /// What an event costs the thread that it happens to, in what it costs in a loop of cheap calls, where it was
    /// measured: there the tracer's code and buffer stay in the first caches. Measured: 2.1 to 3, by the rates of
    /// PostgreSQL with and without recording, order entry, 1 to 32 clients, 2 cores of an EPYC in a virtual machine.
    EVENT_FACTOR: f64 = 2.5;
    /// More than an event was ever seen to cost in that loop. Measured: 270 to 400 ns, 2 cores of an EPYC in a virtual
    /// machine.
    MOST_EVENT_NS: f64 = 2_000.0;
    /// Least share of a CPU burst that is left when the cost of recording is taken off. Chosen.
    LEAST_CPU_SHARE: f64 = 0.2;
    /// Waits much shorter than this leave a core's caches warm. Measured: see `scheduler/cache_warmup.rs`.
    WARMUP_SCALE_NS: f64 = 2_000_000.0;
    /// A core that was idle for so long becomes no colder. Measured: as [`WARMUP_SCALE_NS`].
    WARMUP_COLDEST_NS: f64 = 8_000_000.0;
    /// What the coldest core costs a database until it is warm, where its recording does not tell: so many times what a
    /// pause of 8 ms costs the fixed workload by which the recording measures its host. Measured: [`WARMUP_COLD_NS`]
    /// over 410 µs, the median of 22 recordings on the same machine.
    WARMUP_COLD_FACTOR: f64 = 0.6;
    /// The same cost in time, where the host was not measured. Measured: pgbench on PostgreSQL 15, 4 and 16 clients, an
    /// emulated SSD and a 7,200 rpm disk, 2 cores of an EPYC in a virtual machine.
    WARMUP_COLD_NS: f64 = 250_000.0;
    /// Time on a core in which coldness falls to 1/e. Measured: see `scheduler/cache_warmup.rs`.
    WARMUP_WARM_NS: f64 = 200_000.0;
    /// Largest coldness of a client's thread; that of a server's thread is 1. Measured: see `scheduler/cache_warmup.rs`.
    WARMUP_CLIENT_SHARE: f64 = 0.1;
    /// Time between requests at which their cost is stated. Chosen: between the recorded ones.
    REQUESTS_APART_NS: f64 = 100_000.0;
    /// The least that a request costs of that, however soon it follows. Chosen.
    REQUEST_LEAST_FACTOR: f64 = 0.5;
    /// The most, however late. Chosen: measured were 105 to 120 µs at 4.2 ms, three times 34 µs at 0.1 ms.
    REQUEST_MOST_FACTOR: f64 = 5.0;
    /// What a request usually costs the kernel's threads, [`REQUESTS_APART_NS`] after the one before. Measured: 28 to 38
    /// µs, 2 cores of an EPYC in a virtual machine.
    KERNEL_REQUEST_NS: f64 = 36_000.0;
    /// The most that it costs them; what is beyond is put down to idleness, then to bytes. Chosen: see
    /// `storage/storage_cost.rs`.
    KERNEL_REQUEST_MOST_NS: f64 = 50_000.0;
    /// What a request usually costs an emulated disk's server. Measured: 8 to 12 µs, 2 cores of an EPYC in a virtual
    /// machine.
    SERVER_REQUEST_NS: f64 = 10_000.0;
    /// The most that it costs it. Chosen.
    SERVER_REQUEST_MOST_NS: f64 = 15_000.0;
    /// What an emulated disk's server makes good of the path to it. Measured when the disk was made: 14 to 60 µs on 107
    /// disks, 57 in the median, a quiet machine (python/tierwise/host/disk_path.py).
    PATH_NS: u64 = 57_000;
    /// Requests are small below this mean length. Measured: copying so little takes 10 to 30 µs, 2 cores of an EPYC in
    /// a virtual machine.
    SMALL_REQUEST_KIB: f64 = 16.0;
    /// What small requests far apart cost for the time between them, at most, in what one usually costs. Chosen.
    IDLE_REQUEST_MOST_FACTOR: f64 = 4.0;
    /// Up to so long after the one before a request comes to its device as quickly as right after it. Measured:
    /// emulated disks, order entry by one client, 2 cores of an EPYC in a virtual machine.
    QUICK_REQUEST_NS: f64 = 400_000.0;
    /// What requests were on their way for beyond so many times what they cost was their device's. Chosen.
    PATH_MOST_FACTOR: f64 = 2.0;
    /// Requests of a burst cost at most so many times what they do in the median burst. Chosen.
    BURST_MOST_FACTOR: f64 = 1.5;
    /// Share of a write's byte cost that only one write at a time can use: copying into the store of an emulated disk,
    /// not reading from the kernel. Measured: of the server's 1.6 to 1.7 s for 246 MB, 1.2 s, on two quiet days, 2
    /// cores of an EPYC in a virtual machine.
    STORE_SHARE: f64 = 0.7;
    // Storage and page cache
    /// What takes over so many times the median waited for something else: for the commit before, say. Chosen.
    JOURNAL_MOST_FACTOR: f64 = 4.0;
    /// The least share of what passed that the thread ran: a core may start sooner than usual. Chosen.
    JOURNAL_LEAST_SHARE: f64 = 0.2;
    /// Kinds of requests that take no longer than so many times the quickest are all of the path. Chosen.
    PATH_ALIKE_FACTOR: f64 = 1.5;
    /// A size is as good as the best if it leaves so much more unexplained, as a share of the reads that missed.
    /// Chosen.
    CACHE_SIZE_TOLERANCE_SHARE: f64 = 0.05;
    /// Of the memory that processes left, so much at least held pages of files. Chosen: the kernel's own memory is
    /// less.
    CACHE_SURE_SHARE: f64 = 0.8;
    /// Reads that no call shows, as a share of all, from which on they are too many. Chosen.
    UNSEEN_MOST_SHARE: f64 = 0.05;
    /// Caches were empty at the start if they answered less than this of the first uses that full ones would have.
    /// Chosen: more often than not.
    COLD_CACHE_SHARE: f64 = 0.5;
    /// Reads of a role in which nobody waits, if it is read through the page cache: this share at least. Chosen.
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

    /// Scales one figure for as long as the process lives; what is scaled already stays so.
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
