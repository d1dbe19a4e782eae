//! The work of a run: closed loops of steps, the rules of its log and locks, and what was observed.
//!
//! Waits are never part of it: they are recomputed by whoever replays the work.

use tierwise_recording::{Role, ThreadClass};

/// One thing a session does. Times are of the recorded processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Runs on a core.
    Cpu {
        /// Time on the core.
        time_ns: u32,
        /// How long the thread had been off its core before; see [`CpuCost`].
        after_wait_ns: u32,
        /// Whether the client's thread, not the server's, ran.
        client: bool,
    },
    /// Waits outside of the machine, or for a person.
    Away(Away),
    /// Reads of a file that the page cache held.
    Look {
        /// What the file is for.
        role: Role,
        /// Sector of the role's own space.
        sector: u64,
        /// Length.
        sectors: u32,
    },
    /// Reads from the device, and waits.
    Read {
        /// What the file is for.
        role: Role,
        /// Sector of the role's own space.
        sector: u64,
        /// Length.
        sectors: u32,
    },
    /// Writes past the page cache, and waits.
    WriteThrough {
        /// What the file is for.
        role: Role,
        /// Sector of the role's own space.
        sector: u64,
        /// Length.
        sectors: u32,
    },
    /// Writes into the page cache; becomes work for the device later, or at a sync.
    Write {
        /// What the file is for.
        role: Role,
        /// Sector of the role's own space.
        sector: u64,
        /// Length.
        sectors: u32,
    },
    /// Waits until all that was written to files of this role is durable; not a commit.
    Sync {
        /// What the files are for.
        role: Role,
        /// What the sync made the device do: index in [`Work::scripts`].
        script: u32,
    },
    /// Appends to the log's buffer.
    Append {
        /// How much.
        size_bytes: u32,
    },
    /// Waits until the log is durable up to what this session has appended.
    Commit,
    /// Takes one key of a hot lock, to be released at the end of the turn's commit.
    Lock {
        /// Index in [`Work::locks`].
        lock: u16,
    },
    /// Lets sessions that await this number go on.
    Signal {
        /// Unique in the work.
        number: u32,
    },
    /// Waits for another session's signal, a dependency that the recording showed and no rule explains.
    Await {
        /// The signal's number.
        number: u32,
    },
}

/// Time that passes whatever the devices do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Away {
    /// How long.
    pub time_ns: u64,
    /// Whether it is the engine's own timer (busy handler, delay) rather than the client.
    pub timer: bool,
}

/// One unit of a session's work: from a request's arrival to the next one's, or a stretch of a loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// First step, in [`Session::steps`].
    pub first_step: u32,
    /// Number of steps.
    pub steps: u32,
    /// Whether a transaction ends with it.
    pub ends: bool,
    /// How long it took in the recording.
    pub recorded_ns: u64,
    /// Burst it is of.
    pub burst: u32,
}

/// When a background session's turns begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// When the one before has ended: a client's loop.
    Loop,
    /// At the recorded distances of time.
    Time,
    /// After as many transactions of all sessions as in the recording.
    Work,
}

/// A closed loop of turns, or background work.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// Name, for reports.
    pub name: String,
    /// What its thread is for.
    pub class: ThreadClass,
    /// When its turns begin.
    pub pace: Pace,
    /// Its turns, in order; consecutive turns of one transaction end with one whose `ends` is true.
    pub turns: Vec<Turn>,
    /// Start of each turn: nanoseconds since the work began, or transactions, by `pace`; empty for loops.
    pub starts: Vec<u64>,
    /// Steps of all turns.
    pub steps: Vec<Step>,
}

/// How an engine makes commits durable together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// The first to come leads and flushes all that is in the log by then; the others wait, and the first of
    /// those that it did not cover leads next (PostgreSQL, InnoDB).
    LeaderFollower,
    /// The leader takes those that wait when it starts; they are done when it is (RocksDB).
    WriteGroup,
    /// One writer at a time holds the whole database from its first write to the end of its commit (SQLite).
    Exclusive,
    /// Every commit flushes for itself.
    Alone,
}

/// What one sync made the device do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyncScript {
    /// Writes that it waited for, as (sector of the role's own space, sectors), sent together.
    pub writes: Vec<(u64, u32)>,
    /// Flushes, one after the other, each after the writes before it; 0 if the device has no volatile cache.
    pub flushes: u32,
    /// Writes of the file system's journal among them, sent between flushes.
    pub journal_writes: Vec<(u64, u32)>,
}

/// How the log becomes durable.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRules {
    /// How commits share a flush.
    pub grouping: Grouping,
    /// Scripts of recorded flushes of the log, drawn at random; their writes are replaced by what was appended.
    pub scripts: Vec<SyncScript>,
    /// Granule of a write to the log.
    pub page_bytes: u32,
    /// First sector and length of the log in its role's own space; it is written round and round.
    pub first_sector: u64,
    /// Length.
    pub sectors: u64,
    /// Processor time of the leader per flush, beyond that of its session's steps.
    pub leader_cpu_ns: u32,
    /// From the end of a flush until a waiter can run, per waiter woken.
    pub wake_ns: u32,
    /// A thread of the engine flushes what is left, so often; none if there is none.
    pub flusher_period_ns: Option<u64>,
}

/// A lock that transactions take and hold over their commit.
#[derive(Clone, Debug, PartialEq)]
pub struct HotLock {
    /// What is known of it, for reports.
    pub name: String,
    /// Number of keys, all alike, that reproduces the observed waits.
    pub keys: u32,
    /// Observed share of the sessions' time that was spent waiting for it.
    pub observed_share: f64,
}

/// How the processor cost of a step depends on how long its thread had been off its core.
///
/// A burst that followed a wait of `w` costs `1 + slope × ln(1 + w / scale)` times that after none, up to
/// `most`; fitted to the recording's own bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuCost {
    /// Slope.
    pub slope: f64,
    /// Scale, in nanoseconds.
    pub scale_ns: f64,
    /// Upper limit of the factor.
    pub most: f64,
}

/// A device of the recording, and the times it took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedDevice {
    /// Its profile as TOML, if it was an emulated device.
    pub profile: Option<String>,
    /// Service times in nanoseconds as observed: of reads, writes and flushes, with their sizes in sectors.
    pub reads: Vec<(u32, u64)>,
    /// Of writes.
    pub writes: Vec<(u32, u64)>,
    /// Of flushes.
    pub flushes: Vec<u64>,
    /// Most requests that were under way together.
    pub depth: u32,
    /// Roles that lie on it, with the first sector of each on it and its length.
    pub roles: Vec<(Role, u64, u64)>,
    /// Whether a flush means work.
    pub write_cache: bool,
}

/// What the recording observed, to be reproduced before anything is predicted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Time in bursts.
    pub span_ns: u64,
    /// Turns a second of all client sessions.
    pub turns_per_s: f64,
    /// Transactions a second.
    pub transactions_per_s: f64,
    /// Latency of transactions, sorted, at most some thousands.
    pub latencies_ns: Vec<u64>,
    /// Commits per flush of the log.
    pub commits_per_flush: f64,
    /// Share of the cores that were busy.
    pub busy_share: f64,
    /// Share of the sessions' time by what it went to, by the names of profiles.
    pub shares: Vec<(String, f64)>,
}

/// All that replay needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Cores of the recorded machine.
    pub cores: u32,
    /// Its memory.
    pub memory_bytes: u64,
    /// Clients' sessions and background work.
    pub sessions: Vec<Session>,
    /// What syncs made devices do.
    pub scripts: Vec<SyncScript>,
    /// The rules of the log, if there is one.
    pub log: Option<LogRules>,
    /// Locks held over commits.
    pub locks: Vec<HotLock>,
    /// Cost of idleness.
    pub cpu: Option<CpuCost>,
    /// Processor time of others, as a share of all cores.
    pub foreign_cpu_share: f64,
    /// Devices, and what lies on them.
    pub devices: Vec<RecordedDevice>,
    /// Sectors of each role's own space that are in use.
    pub footprints: Vec<(Role, u64)>,
    /// What was observed.
    pub observed: Observed,
    /// What the recording cannot tell, as sentences.
    pub limits: Vec<String>,
}
