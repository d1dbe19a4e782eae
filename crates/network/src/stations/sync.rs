//! Syncs: data, the file system's journal, flushes.
//!
//! Sources: `ext4_sync_file` (fs/ext4/fsync.c) waits until the data is written, requests the journal's commit or a
//! flush, and waits again: so its caller wakes in between, on its core. `jbd2_journal_commit_transaction`
//! (fs/jbd2/commit.c) waits for the journal's blocks, then sends the commit record with `REQ_PREFLUSH | REQ_FUA`, which
//! blk-flush.c turns into a flush, the write and another flush. So the record, though next to the blocks, comes a
//! revolution of a disk later. Left out: processor time of the journal's thread.

use tierwise_device::Op;
use tierwise_recording::Role;
use tierwise_work::{SyncRequests, TimeCategory};

use crate::block::storage::RequestOwner;
use crate::kernel::clock::TaskId;
use crate::kernel::machine::Machine;
use crate::kernel::task::{RequestWait, TaskHandle};
use crate::stations::cores::CoreClaimant;

/// Which writes a sync sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncWrites {
    /// Those of a recorded sync of files of a role, and dirty pages in its range.
    Recorded { role: Role, script: u32 },
    /// The log's bytes from one position to another; journal writes and flushes as in a recorded flush.
    Log { script: u32, from: u64, to: u64 },
}

impl SyncWrites {
    fn role(&self) -> Role {
        match self {
            Self::Recorded { role, .. } => *role,
            Self::Log { .. } => Role::Log,
        }
    }

    fn activity(&self) -> TimeCategory {
        match self {
            Self::Recorded { .. } => TimeCategory::Write,
            Self::Log { .. } => TimeCategory::LogDevice,
        }
    }
}

impl<'a> TaskHandle<'a> {
    /// Waits until files of a role are durable.
    pub(crate) async fn sync(&self, role: Role, script: u32) {
        if self.program.work.scripts[script as usize].shared {
            return self.sync_second_log(role, script).await;
        }
        if role == Role::Log && self.flush_unawaited().await {
            return;
        }
        self.run_sync(SyncWrites::Recorded { role, script }, true)
            .await;
    }

    /// Passes through the stages of a sync. `session`: a session waits, and wakes when the data is written.
    pub(crate) async fn run_sync(&self, writes: SyncWrites, session: bool) {
        let (role, activity) = (writes.role(), writes.activity());
        let script = self.script(&writes);
        let journal = script.map_or(&[][..], |script| &script.journal_writes);
        let (blocks, record) = journal.split_at(journal.len().saturating_sub(1));
        let recorded_flushes = script.map_or(1, |script| script.flushes);
        let flushes =
            self.machine()
                .storage
                .layout()
                .flushes(role, recorded_flushes, !journal.is_empty());
        let wrote = self.write_data(&writes).await;
        if session && wrote && (flushes > 0 || !journal.is_empty()) {
            self.run(CoreClaimant::Server, 1).await;
        }
        self.write_journal(role, blocks, activity).await;
        // ext4's fast commits are written by the caller, and flushed once, after the record.
        let after_record = flushes == 1 && script.is_some_and(|script| script.by_caller);
        let before = u32::from(flushes > 0 && !after_record);
        self.flush(role, before, activity).await;
        self.write_journal(role, record, activity).await;
        self.flush(role, flushes - before, activity).await;
        self.machine().set_activity(self.id, activity);
        self.machine().leave_core(self.id);
    }

    /// The recorded sync.
    fn script(&self, writes: &SyncWrites) -> Option<&'a SyncRequests> {
        let work = &self.program.work;
        match *writes {
            SyncWrites::Recorded { script, .. } => work.scripts.get(script as usize),
            SyncWrites::Log { script, .. } => work.log.as_ref()?.scripts.get(script as usize),
        }
    }

    /// Writes a sync's data, and waits for its files' pages that are being written back; whether there were any.
    async fn write_data(&self, writes: &SyncWrites) -> bool {
        let mut cursor = 0;
        self.machine().await_write_back(self.id, writes);
        let mut any = false;
        loop {
            self.machine().send_data(self.id, writes, &mut cursor);
            if self.change(|task| task.outstanding) == 0 {
                return any;
            }
            any = true;
            self.await_requests(RequestWait::Any, writes.activity())
                .await;
        }
    }

    async fn write_journal(&self, role: Role, writes: &[(u64, u32)], activity: TimeCategory) {
        for &(sector, sectors) in writes {
            self.machine()
                .send_for(self.id, role, Op::Write, sector, sectors);
        }
        self.await_requests(RequestWait::All, activity).await;
    }

    async fn flush(&self, role: Role, count: u32, activity: TimeCategory) {
        for _ in 0..count {
            self.machine().send_for(self.id, role, Op::Flush, 0, 0);
            self.await_requests(RequestWait::All, activity).await;
        }
    }
}

impl Machine<'_> {
    /// Sends a request that a task will wait for.
    pub(crate) fn send_for(&mut self, id: TaskId, role: Role, op: Op, sector: u64, sectors: u32) {
        let (owner, place) = (RequestOwner::Task(id), (sector, sectors));
        let sent = self.storage.send(&mut self.clock, owner, role, op, place);
        self.task(id).outstanding += sent;
    }

    /// Lets a sync wait for writes of its files under way.
    fn await_write_back(&mut self, id: TaskId, writes: &SyncWrites) {
        if let SyncWrites::Recorded { role, script } = *writes {
            let range = synced_range(&self.program.work.scripts[script as usize]);
            let under_way = self.pages.flusher.wait_for(id, role, range);
            self.task(id).outstanding += under_way;
        }
    }

    /// Sends a sync's writes up to the write-back limit.
    fn send_data(&mut self, id: TaskId, writes: &SyncWrites, cursor: &mut u64) {
        loop {
            let limited = matches!(writes, SyncWrites::Recorded { .. });
            let many = limited && self.task(id).outstanding > 0;
            if many && !self.storage.has_room(writes.role(), false) {
                return;
            }
            let Some((sector, sectors)) = self.next_write(writes, cursor) else {
                return;
            };
            self.send_for(id, writes.role(), Op::Write, sector, sectors);
        }
    }

    /// The next write of a sync: first the writes that only the recorded sync shows, then the dirty pages of its files.
    /// The cursor counts the former, then adds the next sector of the latter.
    fn next_write(&mut self, writes: &SyncWrites, cursor: &mut u64) -> Option<(u64, u32)> {
        match *writes {
            SyncWrites::Log { from, to, .. } => {
                let parts = self.log.as_ref()?.writes(from, to);
                let part = parts.get(*cursor as usize).filter(|part| part.1 > 0)?;
                *cursor += 1;
                Some(*part)
            }
            SyncWrites::Recorded { role, script } => {
                let script = &self.program.work.scripts[script as usize];
                if let Some(write) = script.writes.get(*cursor as usize) {
                    *cursor += 1;
                    return Some(*write);
                }
                let recorded = script.writes.len() as u64;
                let (first, end) = synced_range(script);
                let from = (*cursor - recorded).max(first);
                let run = self.pages.dirty.next_dirty(role, from, end)?;
                *cursor = recorded + run.0 + u64::from(run.1);
                Some(run)
            }
        }
    }
}

/// First sector and end of the range a sync covers; everything where the work does not say.
fn synced_range(script: &SyncRequests) -> (u64, u64) {
    match script.range.1 {
        0 => (0, u64::MAX),
        _ => script.range,
    }
}
