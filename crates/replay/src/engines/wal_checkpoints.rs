//! A log from which pages are moved to their places by the work done (SQLite's write-ahead log).
//!
//! Source: sqlite3.c. `sqlite3WalDefaultHook`: whoever commits and finds so many pages in the log moves them, unless
//! another does. `walCheckpoint`: the log is flushed; the last frame of each page is written to its place, up to where
//! the oldest transaction still reads; those are flushed, unless somebody has committed meanwhile. `walRestartLog`: a
//! transaction that began when all had been moved writes the log from its start again, if no other reads in it. So on
//! a slow device, where others commit during every checkpoint, the log never begins anew: its file becomes longer,
//! which costs each commit a write of the file system's journal and a second flush (fs/jbd2/commit.c). Not modelled:
//! readers that hold off a checkpoint altogether (lock 0), transactions that are rolled back.

use tierwise_device::Nanos;
use tierwise_recording::Role;

use crate::engines::wal::alike;
use crate::kernel::session::{NO_MARK, NONE, Resume, SERVER};
use crate::kernel::simulation::Simulation;
use crate::program::operation::Moving;

impl Simulation<'_> {
    /// A session's transaction sees the database as it is now.
    pub(crate) fn begins_to_read(&mut self, index: u32) {
        if let Some(ahead) = &self.ahead {
            self.sessions[index as usize].mark = ahead.mark();
        }
    }

    /// What a session put into the log counts from now on.
    pub(crate) fn has_put_frames(&mut self, index: u32) {
        self.reads_no_more(index);
        if let Some(ahead) = &mut self.ahead {
            ahead.committed = ahead.count();
        }
    }

    /// A session's transaction is over, or it gave way and sleeps.
    pub(crate) fn reads_no_more(&mut self, index: u32) {
        self.session(index).mark = NO_MARK;
    }

    /// How far the oldest of the other transactions sees.
    fn oldest_mark(&self, index: u32) -> u64 {
        let others = (0..)
            .zip(&self.sessions)
            .filter(|(other, _)| *other != index);
        others
            .map(|(_, session)| session.mark)
            .min()
            .unwrap_or(NO_MARK)
    }

    /// A session puts pages into the log, from its start where nobody reads in it; whether it can go on at once.
    pub(crate) fn put_frames(&mut self, index: u32, count: u32) -> bool {
        let unread = self.oldest_mark(index) == NO_MARK;
        let mark = self.sessions[index as usize].mark;
        let Some(ahead) = &mut self.ahead else {
            return true;
        };
        let restarts =
            unread && mark == NO_MARK && ahead.moved > 0 && ahead.moved == ahead.committed;
        if restarts {
            ahead.restart();
        }
        let begins = ahead.frames.is_empty();
        ahead.put(count);
        let script = ahead.rules.header_script;
        if !begins {
            return true;
        }
        if let Some(log) = &mut self.log {
            log.restart_file();
        }
        self.sync(index, Role::Log, script);
        self.block(index)
    }

    /// The log's file is a new one.
    pub(crate) fn make_log_anew(&mut self) -> bool {
        if let Some(ahead) = &mut self.ahead {
            ahead.restart();
            ahead.room_bytes = 0;
        }
        true
    }

    /// A session goes through a checkpoint; whether it can go on at once.
    pub(crate) fn checkpoint(&mut self, index: u32, stage: Moving) -> bool {
        match stage {
            Moving::Begin => self.begin_to_move(index),
            Moving::Copy => self.copy_pages(index),
            Moving::Flush => self.flush_pages(index),
            Moving::End => self.end_move(),
        }
    }

    fn begin_to_move(&mut self, index: u32) -> bool {
        let oldest = self.oldest_mark(index);
        let Some(ahead) = &mut self.ahead else {
            return true;
        };
        let safe = ahead.committed.min(oldest);
        let due = ahead.committed >= u64::from(ahead.rules.after_pages);
        if !due || ahead.mover != NONE || safe <= ahead.moved {
            self.session(index).position += Moving::AFTER_BEGIN;
            return true;
        }
        ahead.mover = index;
        ahead.choose(safe);
        let script = ahead.rules.log_script;
        self.sync(index, Role::Log, script);
        self.block(index)
    }

    fn copy_pages(&mut self, index: u32) -> bool {
        let Some(ahead) = &self.ahead else {
            return true;
        };
        let pages = ahead.pages.len() as u64;
        let rules = ahead.rules;
        let traced_ns = pages * u64::from(rules.page_traced_ns);
        let base_ns = Nanos::from(rules.around_ns) + pages * Nanos::from(rules.page_ns);
        self.session(index).traced_ns = u32::try_from(traced_ns).unwrap_or(u32::MAX);
        self.request_core(index, SERVER, base_ns.max(1), Resume::Next);
        false
    }

    fn flush_pages(&mut self, index: u32) -> bool {
        let Some(ahead) = &self.ahead else {
            return true;
        };
        let sectors = ahead.rules.page_sectors;
        for page in &ahead.pages {
            self.dirty_pages.write(self.now, Role::Data, *page, sectors);
        }
        self.wake_flusher();
        let Some(ahead) = self
            .ahead
            .as_ref()
            .filter(|ahead| ahead.safe == ahead.committed)
        else {
            return true;
        };
        let alike = alike(&ahead.rules.scripts, ahead.pages.len() as u32);
        let script = alike[self.random.below(alike.len())].1;
        self.sync(index, Role::Data, script);
        self.block(index)
    }

    fn end_move(&mut self) -> bool {
        if let Some(ahead) = &mut self.ahead {
            ahead.moved = ahead.safe;
            ahead.mover = NONE;
        }
        true
    }
}
