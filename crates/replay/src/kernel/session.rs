//! The state of each session.

use tierwise_device::Nanos;
use tierwise_recording::Role;
use tierwise_work::{Reuse, TimeCategory};

/// No session, core or key.
pub(crate) const NONE: u32 = u32::MAX;
/// Index of a session's server thread, and of its client thread.
pub(crate) const SERVER: usize = 0;
pub(crate) const CLIENT: usize = 1;
/// No snapshot: the session reads nothing from the write-ahead log.
pub(crate) const NO_SNAPSHOT: u64 = u64::MAX;

/// A session's action when its wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    /// Executes its next operation.
    Next,
    /// Executes the same operation again.
    Retry,
    /// Takes a core to check whether the flush it waited for covered its commit.
    RecheckFlush,
    /// As leader: leads the flush, after the wait for more commits.
    LeadFlush,
    /// As leader: sends the flush.
    SendFlush,
    /// As leader: releases the log and its waiters.
    ReleaseLog,
    /// Continues: its commit is durable in the log.
    Committed,
    /// The data of this sync job is written: requests the next stage.
    DataWritten(u32),
    /// Its client's thread has sent its request.
    ClientDone,
}

/// An asynchronous request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) job: u32,
    pub(crate) role: Role,
    pub(crate) sector: u64,
    pub(crate) sectors: u32,
}

/// Which asynchronous requests a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    Nothing,
    All,
    Job(u32),
}

/// The state of one session.
#[derive(Debug)]
pub(crate) struct SessionState {
    /// Index of its program.
    pub(crate) program_index: u32,
    /// Which copy of the recorded sessions it belongs to.
    pub(crate) set: u32,
    /// Index of its client's thread, or [`NONE`].
    pub(crate) client: u32,
    /// Index of the next operation.
    pub(crate) position: u32,
    pub(crate) resume: Resume,
    /// The core it is on, or [`NONE`].
    pub(crate) core: u32,
    /// Which of its two threads runs or ran last: [`SERVER`] or [`CLIENT`].
    pub(crate) thread: usize,
    /// Processor time that it still needs.
    pub(crate) pending_ns: Nanos,
    pub(crate) activity: TimeCategory,
    pub(crate) activity_since: Nanos,
    /// End of the log after its last append.
    pub(crate) appended: u64,
    /// Log position up to which its flush reaches.
    pub(crate) flush_end: u64,
    /// Keys of hot locks that it holds.
    pub(crate) held_keys: Vec<u32>,
    pub(crate) transaction_began: Nanos,
    /// Whether its client has the reply and has not sent the next request.
    pub(crate) replied: bool,
    /// From its last reply of a transaction until its server's thread runs for the next one.
    pub(crate) between_transactions: bool,
    /// Its asynchronous requests.
    pub(crate) sent: Vec<Sent>,
    pub(crate) waits_for: WaitsFor,
    /// How many sectors its stream continues after the next read.
    pub(crate) stream_sectors: u32,
    /// Reuse distance of its next reads.
    pub(crate) reuse: Reuse,
    /// Where its last read of evicted pages ended.
    pub(crate) read_until: Option<(Role, u64)>,
    /// The key that it tries to get, or [`NONE`].
    pub(crate) awaited_key: u32,
    /// Number of restarts of its program.
    pub(crate) cycle: u32,
    pub(crate) cycle_began: Nanos,
    /// Of a paced session: the number of turns scheduled.
    pub(crate) turn: u32,
    /// Failed attempts to get the key.
    pub(crate) lock_attempts: u32,
    /// Position up to which its transaction reads the write-ahead log, or [`NO_SNAPSHOT`].
    pub(crate) snapshot: u64,
    /// Whether it is a client session, which metrics measure.
    pub(crate) counts: bool,
    pub(crate) finished: bool,
}

impl SessionState {
    pub(crate) fn new(program_index: u32, set: u32, counts: bool) -> Self {
        Self {
            program_index,
            set,
            client: NONE,
            position: 0,
            resume: Resume::Next,
            core: NONE,
            thread: 0,
            pending_ns: 0,
            activity: TimeCategory::Other,
            activity_since: 0,
            appended: 0,
            flush_end: 0,
            held_keys: Vec::with_capacity(8),
            transaction_began: 0,
            replied: false,
            between_transactions: true,
            sent: Vec::new(),
            waits_for: WaitsFor::Nothing,
            stream_sectors: 0,
            reuse: Reuse::UNKNOWN,
            read_until: None,
            awaited_key: NONE,
            cycle: 0,
            cycle_began: 0,
            turn: 0,
            lock_attempts: 0,
            snapshot: NO_SNAPSHOT,
            counts,
            finished: false,
        }
    }
}
