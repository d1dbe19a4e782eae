//! What requests are for: a session that waits, a sync in its stages, write-back.

use tierwise_device::Nanos;
use tierwise_recording::Role;

/// Who is told when a job is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDone {
    /// A session goes on.
    Session(u32),
    /// A session may wait for it.
    AsyncRequest(u32),
    /// The log is durable as far as this flush reaches.
    LogFlush,
    /// Pages of a stream are there.
    ReadAhead,
    /// The flusher of the page cache sends more of this role.
    WriteBack(Role),
}

/// Whose writes a sync makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncWrites {
    /// None; the requests were sent at the start.
    None,
    /// Those of a script of the work.
    Recorded(u32),
    /// Those of the log from one byte to another, else as a script of the log says.
    Log { script: u32, from: u64, to: u64 },
}

/// Requests that are under way together, and what comes after them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) on_done: OnDone,
    pub(crate) writes: SyncWrites,
    pub(crate) role: Role,
    pub(crate) stage: u32,
    /// How far its writes were sent: by their number, or of dirty pages the next sector.
    pub(crate) cursor: u64,
    pub(crate) pending: u32,
    /// When its last stage was sent.
    pub(crate) sent_at: Nanos,
    /// Whether what has to run before its next stage has.
    pub(crate) is_ready: bool,
    /// Who leads the flush, or [`crate::kernel::session::NONE`].
    pub(crate) leader: u32,
}

impl Job {
    /// A job that has sent nothing yet.
    pub(crate) fn new(on_done: OnDone, writes: SyncWrites, role: Role) -> Self {
        Self {
            on_done,
            writes,
            role,
            stage: 0,
            cursor: 0,
            pending: 0,
            sent_at: 0,
            is_ready: false,
            leader: crate::kernel::session::NONE,
        }
    }
}

/// All jobs under way.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    table: Vec<Job>,
    free: Vec<u32>,
}

impl Jobs {
    pub(crate) fn add(&mut self, job: Job) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.table[index as usize] = job;
                index
            }
            None => {
                self.table.push(job);
                self.table.len() as u32 - 1
            }
        }
    }

    pub(crate) fn get(&mut self, index: u32) -> &mut Job {
        &mut self.table[index as usize]
    }

    pub(crate) fn remove(&mut self, index: u32) -> Job {
        self.free.push(index);
        self.table[index as usize]
    }
}
