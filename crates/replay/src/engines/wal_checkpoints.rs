//! Checkpoints of a write-ahead log, run by the committing session (SQLite).
//!
//! Source: sqlite3.c. `sqlite3WalDefaultHook`: a session that commits and finds enough pages in the log runs
//! a checkpoint, unless another does. `walCheckpoint`: flush the log; write the last frame of each page to
//! its place, up to the read position of the oldest transaction; flush the data file, unless another session
//! has committed meanwhile. `walRestartLog`: a transaction that began when all frames had been copied
//! restarts the log, if no other reads in it. So on a slow device, where others commit during every
//! checkpoint, the log never restarts: its file grows, which costs each commit a journal write and a second
//! flush (fs/jbd2/commit.c). Not modelled: readers that block a checkpoint altogether (lock 0), rollbacks.

use tierwise_device::Nanos;
use tierwise_recording::Role;

use crate::engines::wal::similar_flushes;
use crate::kernel::session::{NO_SNAPSHOT, NONE, Resume, SERVER};
use crate::kernel::simulation::Simulation;
use crate::program::operation::CheckpointPhase;

impl Simulation<'_> {
    /// Takes a snapshot for a session's transaction.
    pub(crate) fn take_snapshot(&mut self, index: u32) {
        if let Some(wal) = &self.wal {
            self.sessions[index as usize].snapshot = wal.snapshot();
        }
    }

    /// Commits a session's frames.
    pub(crate) fn publish_frames(&mut self, index: u32) {
        self.drop_snapshot(index);
        if let Some(wal) = &mut self.wal {
            wal.committed = wal.count();
        }
    }

    /// Drops a session's snapshot: its transaction ended, or it yielded and sleeps.
    pub(crate) fn drop_snapshot(&mut self, index: u32) {
        self.session(index).snapshot = NO_SNAPSHOT;
    }

    /// The oldest snapshot of the other sessions.
    fn oldest_snapshot(&self, index: u32) -> u64 {
        let others = (0..)
            .zip(&self.sessions)
            .filter(|(other, _)| *other != index);
        others
            .map(|(_, session)| session.snapshot)
            .min()
            .unwrap_or(NO_SNAPSHOT)
    }

    /// Appends a session's pages; restarts the log if no session reads it. Whether the session can continue
    /// at once.
    pub(crate) fn append_frames(&mut self, index: u32, count: u32) -> bool {
        let unread = self.oldest_snapshot(index) == NO_SNAPSHOT;
        let snapshot = self.sessions[index as usize].snapshot;
        let Some(wal) = &mut self.wal else {
            return true;
        };
        let restarts = unread
            && snapshot == NO_SNAPSHOT
            && wal.checkpointed > 0
            && wal.checkpointed == wal.committed;
        if restarts {
            wal.restart();
        }
        let begins = wal.frames.is_empty();
        wal.append(count);
        let script = wal.rules.header_script;
        if !begins {
            return true;
        }
        if let Some(log) = &mut self.log {
            log.restart_file();
        }
        self.sync(index, Role::Log, script);
        self.block(index)
    }

    /// Replaces the log's file by a new one.
    pub(crate) fn recreate_log(&mut self) -> bool {
        if let Some(wal) = &mut self.wal {
            wal.restart();
            wal.file_bytes = 0;
        }
        true
    }

    /// Executes a phase of a checkpoint; whether the session can continue at once.
    pub(crate) fn checkpoint(&mut self, index: u32, stage: CheckpointPhase) -> bool {
        match stage {
            CheckpointPhase::Begin => self.begin_checkpoint(index),
            CheckpointPhase::Copy => self.copy_pages(index),
            CheckpointPhase::Flush => self.flush_pages(index),
            CheckpointPhase::End => self.end_checkpoint(),
        }
    }

    fn begin_checkpoint(&mut self, index: u32) -> bool {
        let oldest = self.oldest_snapshot(index);
        let Some(wal) = &mut self.wal else {
            return true;
        };
        let checkpoint_end = wal.committed.min(oldest);
        let due = wal.committed >= u64::from(wal.rules.after_pages);
        if !due || wal.checkpointer != NONE || checkpoint_end <= wal.checkpointed {
            self.session(index).position += CheckpointPhase::COUNT_AFTER_BEGIN;
            return true;
        }
        wal.checkpointer = index;
        wal.choose_pages(checkpoint_end);
        let script = wal.rules.log_script;
        self.sync(index, Role::Log, script);
        self.block(index)
    }

    fn copy_pages(&mut self, index: u32) -> bool {
        let Some(wal) = &self.wal else {
            return true;
        };
        let pages = wal.pages.len() as u64;
        let rules = wal.rules;
        let base_ns = Nanos::from(rules.fixed_ns) + pages * Nanos::from(rules.page_ns);
        self.request_core(index, SERVER, base_ns.max(1), Resume::Next);
        false
    }

    fn flush_pages(&mut self, index: u32) -> bool {
        let Some(wal) = &self.wal else {
            return true;
        };
        let sectors = wal.rules.page_sectors;
        for page in &wal.pages {
            self.dirty_pages.write(self.now, Role::Data, *page, sectors);
        }
        self.wake_flusher();
        let Some(wal) = self
            .wal
            .as_ref()
            .filter(|wal| wal.checkpoint_end == wal.committed)
        else {
            return true;
        };
        let similar = similar_flushes(&wal.rules.scripts, wal.pages.len() as u32);
        let script = similar[self.random.below(similar.len())].1;
        self.sync(index, Role::Data, script);
        self.block(index)
    }

    fn end_checkpoint(&mut self) -> bool {
        if let Some(wal) = &mut self.wal {
            wal.checkpointed = wal.checkpoint_end;
            wal.checkpointer = NONE;
        }
        true
    }
}
