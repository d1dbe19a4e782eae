//! The work of a run: closed loops of steps, the rules of its log and locks, and what was observed.
//!
//! Waits are never part of it: they are recomputed by whoever replays the work.

use std::collections::BTreeMap;

use tierwise_recording::{Role, ThreadClass};

use crate::{
    Disabled, JournalRules, PageCache, PreemptionRules, Step, StorageCost, TimeCategory,
    WakeupRules, WarmupCost,
};

/// One unit of a session's work: from a request's arrival to the next one's, or a part of a loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// First step, in [`Session::steps`].
    pub first_step: u32,
    /// Number of steps.
    pub steps: u32,
    /// Steps at its end that come after the reply: the client's.
    pub tail_steps: u32,
    /// Whether a transaction ends with it.
    pub ends: bool,
    /// How long it took in the recording.
    pub recorded_ns: u64,
    /// Burst it is of.
    pub burst: u32,
    /// Processor time that cold caches cost its steps in the recording; they hold what is left.
    pub cold_ns: u32,
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
    /// The thread of its client, the same number for sessions that share one; none if it was not recorded, or
    /// several threads served it.
    pub client: Option<u32>,
    /// Of each burst: the core on which its thread ran longest; none where it did not run.
    pub cores: Vec<Option<u16>>,
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
    /// The first to come leads and flushes all that is in the log by then; the others wait until it is done.
    /// Then all of them look, and the first of those that it did not cover leads next (PostgreSQL).
    LeaderFollower,
    /// The same, but of those that were not covered only one is woken, to lead; the others sleep on (InnoDB).
    Relay,
    /// The leader takes those that wait when it starts; they are done when it is (RocksDB).
    WriteGroup,
    /// One writer at a time: the right to write is a lock of one key, held over the commit (SQLite).
    Exclusive,
    /// Every commit flushes for itself.
    Alone,
}

/// What one sync made the device do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyncScript {
    /// Writes that it waited for together, as (sector of the role's space, sectors), but for pages that steps dirty.
    pub writes: Vec<(u64, u32)>,
    /// First sector and end of what it makes durable, in the role's own space: dirty pages between are written.
    pub range: (u64, u64),
    /// Flushes, each after the writes before it, on a device with a volatile cache.
    pub flushes: u32,
    /// Writes of the file system's journal among them, sent between flushes.
    pub journal_writes: Vec<(u64, u32)>,
    /// Whether who asks writes the journal: ext4's fast commits, which may flush once, behind the record.
    pub by_caller: bool,
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
    /// Processor time of the leader per flush, beyond that of its session's steps: until it waits for the device.
    pub leader_cpu_ns: u32,
    /// The same, after it has waited.
    pub release_cpu_ns: u32,
    /// What recording took of a flush's processor time on top.
    pub traced_ns: u32,
    /// From the end of a flush until a waiter can run, per waiter woken.
    pub wake_ns: u32,
    /// Processor time of a session that wakes, is not covered, and requests the lock again.
    pub recheck_ns: u32,
    /// A thread of the engine flushes what is left, so often; none if there is none.
    pub flusher_period_ns: Option<u64>,
}

/// How pages are moved from the log to their places, by the work done: when a commit finds so many of them in the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckpointRules {
    /// Pages in the log at which who commits moves them.
    pub after_pages: u32,
    /// Sectors of a page.
    pub page_sectors: u32,
    /// Bytes that a page takes in the log, and what stands before all of them.
    pub frame_bytes: u32,
    /// The latter.
    pub header_bytes: u32,
    /// How long the log's file was at first: a commit within it changes no more than its pages.
    pub room_bytes: u64,
    /// Processor time that a commit takes on top which makes the file longer.
    pub growing_ns: u32,
    /// The same for each of its frames.
    pub growing_frame_ns: u32,
    /// The share of recorded commits that did.
    pub growing_share: f64,
    /// First sectors of the pages that all commits put into the log, one after the other, in the data's own space; see
    /// [`Step::Frames`].
    pub pages: Vec<u64>,
    /// Processor time of moving a page, of a warm thread.
    pub page_ns: u32,
    /// What recording took of it on top.
    pub page_traced_ns: u32,
    /// Processor time of a checkpoint beside that of its pages, in nanoseconds.
    pub fixed_ns: u32,
    /// What the flush of the log before it makes the device do: index in [`Work::scripts`].
    pub log_script: u32,
    /// The same of the log's header, when it begins anew.
    pub header_script: u32,
    /// The same of flushes of the data, with the pages that were moved, fewest first: few seldom make the file longer.
    pub scripts: Vec<(u32, u32)>,
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
    /// Whether it is released when the commit has ended, not when it begins.
    pub over_commit: bool,
    /// Delays between the tries of one who waits, the last of them for ever; empty if waiters are woken.
    pub retry_ns: Vec<u64>,
    /// How much later the next try came than that, as often as it was seen; one is as likely as another.
    pub late_ns: Vec<u64>,
}

/// One recorded request to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordedRequest {
    /// Length; 0 for a flush.
    pub sectors: u32,
    /// Queue depth: other requests under way when this one was issued.
    pub depth: u32,
    /// From issue to completion, in nanoseconds, less what its sender ran meanwhile.
    pub time_ns: u64,
    /// Whether it was for a file of the log.
    pub log: bool,
}

/// A device of the recording, and the times it took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedDevice {
    /// Its profile as TOML, if it was an emulated device.
    pub profile: Option<String>,
    /// Recorded reads.
    pub reads: Vec<RecordedRequest>,
    /// Recorded writes.
    pub writes: Vec<RecordedRequest>,
    /// Recorded flushes.
    pub flushes: Vec<RecordedRequest>,
    /// Roles that lie on it, with the first sector of each on it and its length.
    pub roles: Vec<(Role, u64, u64)>,
    /// Whether a flush means work.
    pub write_cache: bool,
}

/// A partition that holds one role alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Whose.
    pub role: Role,
    /// Its first sector on the recorded device, by which partitions are in order.
    pub first_sector: u64,
    /// Sectors before the role's own space.
    pub before: u64,
    /// Its length.
    pub sectors: u64,
}

/// What the recording observed, to be reproduced before anything is predicted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Time in bursts.
    pub span_ns: u64,
    /// Transactions that were counted otherwise for each that the turns show: those of a library's callers that
    /// only read leave no trace, and several may share a reply. None if as many show.
    pub counted_per_shown: Option<f64>,
    /// Whether bursts cover all of the recording.
    pub whole: bool,
    /// Turns a second of all client sessions.
    pub turns_per_s: f64,
    /// Transactions a second, with those that do not show.
    pub transactions_per_s: f64,
    /// Latency of transactions, sorted, at most some thousands.
    pub latencies_ns: Vec<u64>,
    /// Commits per flush of the log.
    pub commits_per_flush: f64,
    /// Share of the cores that were busy.
    pub busy_share: f64,
    /// Rate with recording over that without, if that was measured: the rates and latencies above are freed of it,
    /// all else here is as recorded.
    pub rate_ratio: Option<f64>,
    /// Share of the sessions' time by what it went to, by the names of profiles.
    pub shares: Vec<(String, f64)>,
    /// What of it was no time on a core: by what it went to, and the role of the file waited for; in nanoseconds.
    pub waits: Vec<(TimeCategory, Option<Role>, u64)>,
}

/// All that replay needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Cores of the recorded machine.
    pub cores: u32,
    /// Its memory.
    pub memory_bytes: u64,
    /// What of it held pages of files.
    pub page_cache: PageCache,
    /// Clients' sessions and background work.
    pub sessions: Vec<Session>,
    /// The same as [`Session::cores`], of each client thread.
    pub client_cores: BTreeMap<u32, Vec<Option<u16>>>,
    /// What syncs made devices do.
    pub scripts: Vec<SyncScript>,
    /// The rules of the log, if there is one.
    pub log: Option<LogRules>,
    /// How pages come from the log to their places, where that follows the work done.
    pub checkpoints: Option<CheckpointRules>,
    /// Locks held over commits.
    pub locks: Vec<HotLock>,
    /// Cost of cold caches after a wait.
    pub cpu: WarmupCost,
    /// Core selection at wakeups, and the latency of starting idle cores.
    pub wakeups: WakeupRules,
    /// Wakeup preemption, and which runnable thread gets a free core.
    pub preemption: PreemptionRules,
    /// What the threads of file systems' journals run.
    pub journal: JournalRules,
    /// What storage itself costs the processors; none where that is part of others' time.
    pub storage: Option<StorageCost>,
    /// Processor time of others, as a share of all cores.
    pub foreign_cpu_share: f64,
    /// Devices, and what lies on them.
    pub devices: Vec<RecordedDevice>,
    /// Sectors of each role's own space that are in use.
    pub footprints: Vec<(Role, u64)>,
    /// Partitions that hold one role alone: they go with it to another device.
    pub partitions: Vec<Partition>,
    /// How far ahead the kernel read, in sectors, of roles whose files are read through the page cache.
    pub read_ahead: Vec<(Role, u32)>,
    /// How far the recorded kernel reads ahead on devices without moving parts, and with them.
    pub read_ahead_by_device: (u32, u32),
    /// Most bytes of files that were dirty at once, or on their way to the device, as far as bursts show.
    pub most_dirty_bytes: u64,
    /// What was observed.
    pub observed: Observed,
    /// Mechanisms that are switched off.
    pub disabled: Disabled,
    /// What the recording cannot tell, as sentences.
    pub limits: Vec<String>,
}
