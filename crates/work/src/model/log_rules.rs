//! The rules of the log.

use crate::{Grouping, SyncScript};

/// How the log becomes durable.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRules {
    /// How commits share a flush.
    pub grouping: Grouping,
    /// Scripts of recorded flushes of the log, drawn at random; the appended bytes replace their writes.
    pub scripts: Vec<SyncScript>,
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
    /// From the end of a flush until a waiter can run, per waiter woken.
    pub wake_ns: u32,
    /// Processor time of a session that wakes, is not covered, and requests the lock again.
    pub recheck_ns: u32,
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
