//! The work of a run: closed loops of steps, the rules of its log and locks, and observed values.
//!
//! Waits are never part of it: replay recomputes them.

use serde::Serialize;
use tierwise_recording::{Role, ThreadClass};

use crate::{DisabledMechanisms, ReuseCurve, Step};

/// One unit of a session's work: from one request's arrival to the next, or a part of a loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// First step, in [`Session::steps`].
    pub first_step: u32,
    /// Number of steps.
    pub steps: u32,
    /// Steps at its end after the reply: the client's.
    pub tail_steps: u32,
    /// Whether a transaction ends with it.
    pub ends: bool,
    /// How long it took in the recording.
    pub recorded_ns: u64,
}

/// When a background session's turns begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TurnPace {
    /// When the previous one has ended: a client's loop.
    Loop,
    /// At the recorded intervals.
    Time,
    /// After the recorded number of transactions of all sessions.
    Work,
}

/// A closed loop of turns, or background work.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// Name, for reports.
    pub name: String,
    /// Class of its thread.
    pub class: ThreadClass,
    /// The thread of its client, the same number for sessions that share one; none if the thread was not
    /// recorded, or several threads served the session.
    pub client: Option<u32>,
    /// When its turns begin.
    pub pace: TurnPace,
    /// Its turns, in order; consecutive turns of one transaction end with one whose `ends` is true.
    pub turns: Vec<Turn>,
    /// Start of each turn: nanoseconds since the work began, or transactions, by `pace`; empty for loops.
    pub starts: Vec<u64>,
    /// Steps of all turns.
    pub steps: Vec<Step>,
}

/// How an engine makes commits durable together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitGrouping {
    /// The first to arrive leads and flushes all that is in the log by then; the others wait until it is
    /// done. Then all of them check, and the first of those not covered leads next (PostgreSQL).
    LeaderFollower,
    /// The same, but only one of those not covered is woken, to lead; the others sleep on (InnoDB).
    Relay,
    /// The leader takes the commits that wait when it starts; they end when it does (RocksDB).
    WriteGroup,
    /// One writer at a time: the write lock has one key and is held over the commit (SQLite).
    Exclusive,
    /// Every commit flushes for itself.
    Alone,
}

/// Device requests of one sync.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyncRequests {
    /// Writes it waited for together, as (sector of the role's space, sectors); not pages dirtied by steps.
    pub writes: Vec<(u64, u32)>,
    /// First sector and end of the synced range, in the role's own space: its dirty pages are written.
    pub range: (u64, u64),
    /// Flushes, each after the writes before it, on a device with a volatile cache.
    pub flushes: u32,
    /// Writes of the file system's journal among them, sent between flushes.
    pub journal_writes: Vec<(u64, u32)>,
    /// Whether it is of the engine's second log: who waits for one under way shares the next.
    pub shared: bool,
    /// Whether the caller writes the journal: ext4's fast commits, which may flush once, after the record.
    pub by_caller: bool,
}

/// How the log becomes durable.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRules {
    /// How commits share a flush.
    pub grouping: CommitGrouping,
    /// Scripts of recorded flushes of the log, drawn at random; the appended bytes replace their writes.
    pub scripts: Vec<SyncRequests>,
    /// Granule of a write to the log.
    pub page_bytes: u32,
    /// First sector and length of the log in its role's own space; it is written cyclically.
    pub first_sector: u64,
    /// Length.
    pub sectors: u64,
    /// Processor time of the leader per flush, beyond its session's steps: until it waits for the device.
    pub leader_cpu_ns: u32,
    /// The same, after that wait.
    pub release_cpu_ns: u32,
    /// Of both: in calls that write the log without flushing it. A commit that does not wait for a flush has this alone.
    pub write_cpu_ns: u32,
    /// From the end of a flush until a waiter can run, per waiter woken.
    pub wake_ns: u32,
    /// Interval at which a thread of the engine flushes the rest; none if there is no such thread.
    pub flusher_period_ns: Option<u64>,
    /// Wait of a flush's leader for more commits; none if it does not wait.
    pub commit_delay: Option<CommitDelay>,
}

/// A wait before each flush, on every device: the leader holds the log meanwhile, and its flush covers what is appended
/// by the end of the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitDelay {
    /// How long.
    pub time_ns: u32,
    /// It waits if at least this many other sessions are in a transaction that commits.
    pub siblings: u32,
    /// Whether the engine's settings say so, or the recorded waits alone.
    pub from_settings: bool,
}

/// A lock that transactions take and hold over their commit.
#[derive(Clone, Debug, PartialEq)]
pub struct HotLock {
    /// Description, for reports.
    pub name: String,
    /// Number of keys, all alike, that reproduces the observed waits.
    pub keys: u32,
    /// Observed share of the sessions' time that was spent waiting for it.
    pub observed_share: f64,
    /// Whether it is released when the commit has ended, not when it begins.
    pub over_commit: bool,
    /// Delays between a waiter's attempts, the last one repeated; empty if waiters are woken.
    pub retry_ns: Vec<u64>,
    /// Observed lateness of the next attempt, one value per observation; each is equally likely.
    pub late_ns: Vec<u64>,
}

/// One recorded request to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordedRequest {
    /// Length; 0 for a flush.
    pub sectors: u32,
    /// Queue depth: other requests under way when this one was issued.
    pub depth: u32,
    /// From issue to completion, in nanoseconds, less its sender's running time in between.
    pub time_ns: u64,
    /// Whether it was for a file of the log.
    pub log: bool,
}

/// The path of requests to an emulated disk, through the kernel to its server and back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmulatedPath {
    /// Latency that the server compensates, in nanoseconds: a request with a longer device time takes that time.
    pub latency_ns: u64,
    /// What more requests outstanding add, which is not compensated: their number, ascending, and nanoseconds.
    pub added_ns: Vec<(u32, u64)>,
}

impl EmulatedPath {
    /// What the path adds to a request with this many outstanding, itself included, in nanoseconds. Between the
    /// measured numbers it grows evenly, and beyond them not at all: the path's rate is not known there.
    #[must_use]
    pub fn added_ns(&self, outstanding: u32) -> u64 {
        let after = self.added_ns.partition_point(|point| point.0 < outstanding);
        match (
            self.added_ns.get(after.wrapping_sub(1)),
            self.added_ns.get(after),
        ) {
            (Some(&(few, low_ns)), Some(&(many, high_ns))) => {
                let part = f64::from(outstanding - few) / f64::from(many - few);
                (low_ns as f64 + part * (high_ns as f64 - low_ns as f64)) as u64
            }
            (None, Some(&(_, ns))) | (Some(&(_, ns)), None) => ns,
            (None, None) => 0,
        }
    }
}

/// A device of the recording, with its recorded times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedDevice {
    /// Its profile as TOML, if it was an emulated device.
    pub profile: Option<String>,
    /// The path to it, if it was an emulated device and its path was measured.
    pub path: Option<EmulatedPath>,
    /// Recorded reads.
    pub reads: Vec<RecordedRequest>,
    /// Recorded writes.
    pub writes: Vec<RecordedRequest>,
    /// Recorded flushes.
    pub flushes: Vec<RecordedRequest>,
    /// Roles that lie on it, with the first sector of each on it and its length.
    pub roles: Vec<(Role, u64, u64)>,
    /// Whether a flush does work.
    pub write_cache: bool,
}

/// Category of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeCategory {
    /// On a core.
    Cpu,
    /// Runnable; no core was free.
    Runnable,
    /// Waits for the log's device in a call of its own.
    LogDevice,
    /// Waits for another thread's flush of the log.
    LogQueue,
    /// Waits for a read of a file.
    Read,
    /// Waits for a write or sync of a file other than the log.
    Write,
    /// Waits for another thread.
    Lock,
    /// Waits for the client, or in its own thread for the server.
    Client,
    /// Waits for a time, or for work.
    Sleep,
    /// Any other wait.
    Other,
}

impl TimeCategory {
    /// Every category, in the order of reports and of the type itself.
    pub const ALL: [Self; 10] = [
        Self::Cpu,
        Self::Runnable,
        Self::LogDevice,
        Self::LogQueue,
        Self::Read,
        Self::Write,
        Self::Lock,
        Self::Client,
        Self::Sleep,
        Self::Other,
    ];

    /// Its name, as it is serialised.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Runnable => "runnable",
            Self::LogDevice => "log_device",
            Self::LogQueue => "log_queue",
            Self::Read => "read",
            Self::Write => "write",
            Self::Lock => "lock",
            Self::Client => "client",
            Self::Sleep => "sleep",
            Self::Other => "other",
        }
    }
}

/// Observed values, which a replay reproduces before it predicts anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedFigures {
    /// Time in bursts.
    pub span_ns: u64,
    /// The part of it from the first to the last instant at which a session did more than wait for its client.
    pub active_ns: u64,
    /// Separately counted transactions per transaction that the turns show: a library's read-only
    /// transactions leave no trace, and several may share a reply. None if the counts agree.
    pub counted_per_shown: Option<f64>,
    /// Whether the events show hardly a request or a commit, nor was anything counted: turns, and so transactions, are
    /// slices of even length.
    pub sliced: bool,
    /// Whether bursts cover all of the recording.
    pub whole: bool,
    /// Turns a second of all client sessions.
    pub turns_per_s: f64,
    /// Transactions a second, including those that turns do not show.
    pub transactions_per_s: f64,
    /// Latency of transactions, sorted, at most some thousands.
    pub latencies_ns: Vec<u64>,
    /// Commits per flush of the log.
    pub commits_per_flush: f64,
    /// Share of the cores that were busy.
    pub busy_share: f64,
    /// Rate with recording over the rate without, if that was measured: the rates and latencies above are
    /// corrected for it, all other values here are as recorded.
    pub rate_ratio: Option<f64>,
    /// Processor time of the server for a wait with recording over that without, if that was measured.
    pub cpu_ratio: Option<f64>,
    /// Whether transactions arrive by a schedule of their own, rather than when a client has its last answer.
    pub arrive: bool,
    /// Share of the sessions' time by category, with the names of profiles.
    pub shares: Vec<(String, f64)>,
    /// The part off any core, by category and role of the file waited for; in nanoseconds.
    pub waits: Vec<(TimeCategory, Option<Role>, u64)>,
}

/// The page cache as a recording shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PageCache {
    /// Its smallest possible size.
    pub least_bytes: u64,
    /// Its most likely size.
    pub likely_bytes: u64,
    /// Its largest possible size.
    pub most_bytes: u64,
    /// Share of the reads of previously used pages that no LRU size explains: the difference of a cache that
    /// does not always evict the least recently used page.
    pub unexplained: f64,
    /// The engine's own buffer, by its settings; it is not part of the page cache.
    pub engine_bytes: u64,
    /// Whether the engine reads its files past the page cache, so that only its own buffer answers.
    pub passed: bool,
    /// Whether caches were empty at the start and the recording has no gap since, so that first uses are
    /// known.
    pub cold: bool,
    /// Why the recording cannot tell which reads another size would answer, if it cannot.
    pub reason: Option<String>,
}

/// Mean processor time of a read, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReadCpu {
    /// Answered by the page cache.
    pub cached_ns: f64,
    /// Waited for a device.
    pub device_ns: f64,
}

/// A file without a role.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UnassignedFile {
    /// Its path.
    pub path: String,
    /// Its part of all flushes.
    pub flush_share: f64,
    /// Its part of all waits in calls on files.
    pub wait_share: f64,
    /// Whether it is written in order and flushed, as a log is.
    pub is_like_log: bool,
}

/// All that replay needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Cores of the recorded machine.
    pub cores: u32,
    /// Its memory.
    pub memory_bytes: u64,
    /// The part of it that held pages of files.
    pub page_cache: PageCache,
    /// Reuse of pages in the page cache.
    pub cache_reuse: ReuseCurve,
    /// Reuse of pages among the calls that fill the engine's own buffer.
    pub buffer_reuse: ReuseCurve,
    /// Processor time of a read.
    pub read_cpu: ReadCpu,
    /// Clients' sessions and background work.
    pub sessions: Vec<Session>,
    /// Device requests of syncs.
    pub scripts: Vec<SyncRequests>,
    /// The rules of the log, if there is one.
    pub log: Option<LogRules>,
    /// Locks held over commits.
    pub locks: Vec<HotLock>,
    /// Recorded processor time over that on warm cores ([`crate::ColdCoreCost`]); none if cores stay warm and awake.
    pub cold_factor: Option<f64>,
    /// Processor time of other programs, as a share of all cores.
    pub foreign_cpu_share: f64,
    /// Devices, with the roles on them.
    pub devices: Vec<RecordedDevice>,
    /// Measured paths to the emulated disks that were up, used or not, each with the profile as TOML.
    pub paths: Vec<(String, EmulatedPath)>,
    /// Sectors of each role's own space that are in use.
    pub footprints: Vec<(Role, u64)>,
    /// Roles whose files are read through the page cache.
    pub cached_roles: Vec<Role>,
    /// Most bytes of files that were dirty at once, or on their way to the device, as far as bursts show.
    pub most_dirty_bytes: u64,
    /// Observed values.
    pub observed: ObservedFigures,
    /// Disabled mechanisms.
    pub disabled: DisabledMechanisms,
    /// Files without a role that take a part of the flushes or waits.
    pub unassigned: Vec<UnassignedFile>,
    /// Whether commits waited for a replica that the recording does not show.
    pub replica_elsewhere: bool,
    /// Limits of the recording, as sentences.
    pub limits: Vec<String>,
}
