//! Where each session stands.

use tierwise_device::Nanos;
use tierwise_recording::Role;
use tierwise_work::{Part, Reuse};

use crate::block::in_flight::CpuCharge;

/// No core, no key.
pub(crate) const NONE: u32 = u32::MAX;
/// Index of the server's thread, and of the client's.
pub(crate) const SERVER: usize = 0;
pub(crate) const CLIENT: usize = 1;
/// A session that reads nothing of the log.
pub(crate) const NO_SNAPSHOT: u64 = u64::MAX;

/// What a session does when what it waits for has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    /// Its next operation.
    Next,
    /// The same operation once more.
    Retry,
    /// Looks whether a flush that it waited for covered it, on a core.
    RecheckFlush,
    /// As the leader of a flush, sends it.
    SendFlush,
    /// As the leader of a flush that is done, lets the others go on.
    ReleaseLog,
    /// Its commit is durable.
    Committed,
    /// The data of a sync of its, this job, is written: asks for what comes after it.
    DataWritten(u32),
    /// As one of storage's threads, has served a request.
    IoThreadDone(CpuCharge),
    /// As the thread of a file system's journal, has run for this job.
    JournalThreadDone(u32),
    /// Its client's thread has served it.
    ClientDone,
}

/// A request that a session sent without waiting for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) job: u32,
    pub(crate) role: Role,
    pub(crate) sector: u64,
    pub(crate) sectors: u32,
}

/// Which of them a session waits for.
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
    /// Number of the set of all recorded sessions that it is of.
    pub(crate) set: u32,
    /// Its client's thread among those known, or [`NONE`].
    pub(crate) client: u32,
    /// The next operation.
    pub(crate) position: u32,
    pub(crate) resume: Resume,
    /// The core it is on, or [`NONE`].
    pub(crate) core: u32,
    /// Which of its two threads ran last or runs: the server's or the client's.
    pub(crate) thread: usize,
    /// Since when each of them has been off its core.
    pub(crate) off_since: [Nanos; 2],
    /// The core that each of them stays on, or [`NONE`]: any.
    pub(crate) home: [u32; 2],
    /// What it has to run.
    pub(crate) pending_ns: Nanos,
    /// What recording it takes on top of that.
    pub(crate) traced_ns: u32,
    /// How long before now its thread was woken, if it is a client's that shall run.
    pub(crate) head_start_ns: u32,
    /// Whether a device's answer or a timer wakes its thread next.
    pub(crate) woken_by_kernel: bool,
    /// Whether that is yet to be scaled by how long it waited.
    pub(crate) warmup_pending: bool,
    /// How cold each of them was when it last left its core; see [`tierwise_work::CpuCost`].
    pub(crate) coldness: [f64; 2],
    pub(crate) activity: Part,
    pub(crate) activity_since: Nanos,
    /// The log's end after its last append.
    pub(crate) appended: u64,
    /// How far its flush of the log reaches.
    pub(crate) flushes_to: u64,
    /// Keys of hot locks.
    pub(crate) held_keys: Vec<u32>,
    pub(crate) transaction_began: Nanos,
    /// Its client has its answer, and has not asked again.
    pub(crate) replied: bool,
    /// Requests that it sent without waiting.
    pub(crate) sent: Vec<Sent>,
    pub(crate) waits_for: WaitsFor,
    /// Sectors of its stream that are read after the next read.
    pub(crate) stream_sectors: u32,
    /// Reuse of what it reads next.
    pub(crate) reuse: Reuse,
    /// Where it last read what the page cache no longer held: role and end.
    pub(crate) read_until: Option<(Role, u64)>,
    /// The key of a hot lock that it asks for again and again, or [`NONE`].
    pub(crate) awaited_key: u32,
    /// How often it has begun from the start.
    pub(crate) cycle: u32,
    pub(crate) cycle_began: Nanos,
    /// Of a paced session: its turn.
    pub(crate) turn: u32,
    /// How often it has found the database busy.
    pub(crate) lock_attempts: u32,
    /// How far its transaction reads in the log, or [`NO_SNAPSHOT`].
    pub(crate) snapshot: u64,
    /// Whether its time counts.
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
            off_since: [0; 2],
            home: [NONE; 2],
            pending_ns: 0,
            traced_ns: 0,
            head_start_ns: 0,
            woken_by_kernel: false,
            warmup_pending: false,
            coldness: [0.0; 2],
            activity: Part::Other,
            activity_since: 0,
            appended: 0,
            flushes_to: 0,
            held_keys: Vec::with_capacity(8),
            transaction_began: 0,
            replied: false,
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
