//! Jobs: groups of requests, and what follows when they are complete.

use tierwise_recording::Role;

/// What happens when a job is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDone {
    /// A session continues.
    Session(u32),
    /// An asynchronous request of a session is complete.
    AsyncRequest(u32),
    /// The log is durable as far as this flush reaches.
    LogFlush,
    /// Pages were read ahead.
    ReadAhead,
    /// The flusher may write more of this role.
    WriteBack(Role),
}

/// Which writes a sync sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncWrites {
    /// None: the requests were sent at the start.
    None,
    /// Those of a recorded sync, and dirty pages in its range.
    Recorded(u32),
    /// The log's bytes from one position to another; journal writes and flushes as in a recorded flush.
    Log { script: u32, from: u64, to: u64 },
}

/// Requests sent together, and what follows them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) on_done: OnDone,
    pub(crate) writes: SyncWrites,
    pub(crate) role: Role,
    pub(crate) stage: u32,
    /// Progress of its writes: their number, then the next sector of dirty pages.
    pub(crate) cursor: u64,
    pub(crate) pending: u32,
    /// Leader of the flush, or [`crate::kernel::session::NONE`].
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
