//! A second log that commits wait for, as MariaDB's binary log: one session syncs it for all that wait.
//!
//! Models: who comes while a sync is under way waits for its end; then the first of those that wait syncs for all of
//! them. With a setting, each n-th of these groups alone syncs, and the others pass at once: the kernel writes their
//! pages back. Leaves out: processor time of waking them. Sources: sql/log.cc, `MYSQL_BIN_LOG::trx_group_commit_leader`,
//! and `flush_and_sync`, which counts groups up to `sync_binlog`.

use tierwise_recording::Role;
use tierwise_work::TimeCategory;

use crate::kernel::clock::TaskId;
use crate::kernel::machine::Machine;
use crate::kernel::task::Task;
use crate::stations::sync::SyncWrites;

/// Sessions at the second log.
#[derive(Debug)]
pub(crate) struct SecondLog {
    /// Every so manieth group syncs; none does for 0.
    every: u32,
    /// Groups since the last sync.
    unsynced: u32,
    /// The session that syncs.
    leader: Option<TaskId>,
    /// Sessions whose commits the sync under way covers.
    covered: Vec<TaskId>,
    /// Sessions that came later.
    waiting: Vec<TaskId>,
}

impl SecondLog {
    pub(crate) fn new(every: Option<u32>) -> Self {
        Self {
            every: every.unwrap_or(1),
            unsynced: 0,
            leader: None,
            covered: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// Counts a group: whether it syncs.
    fn counts(&mut self) -> bool {
        self.unsynced = self.unsynced.saturating_add(1);
        let syncs = self.every > 0 && self.unsynced >= self.every;
        if syncs {
            self.unsynced = 0;
        }
        syncs
    }
}

impl Task<'_> {
    /// Syncs the second log, or waits for another session's sync that begins later.
    pub(crate) async fn sync_second_log(&self, role: Role, script: u32) {
        if !self.machine().lead_or_join_second_log(self.id) {
            self.block(TimeCategory::LogQueue).await;
            if self.machine().second_log.leader != Some(self.id) {
                return;
            }
        }
        let syncs = self.machine().second_log.counts();
        if syncs {
            let writes = SyncWrites::Recorded { role, script };
            self.run_sync(writes, true).await;
        }
        self.machine().end_second_log_sync();
    }
}

impl Machine<'_> {
    /// Whether a session leads; else it waits.
    fn lead_or_join_second_log(&mut self, session: TaskId) -> bool {
        let leads = self.second_log.leader.is_none();
        if leads {
            self.second_log.leader = Some(session);
        } else {
            self.second_log.waiting.push(session);
        }
        leads
    }

    /// A sync of the second log has ended: those that it covered continue, the first of the others leads the next.
    fn end_second_log_sync(&mut self) {
        let second_log = &mut self.second_log;
        for covered in second_log.covered.drain(..) {
            self.clock.wake(covered);
        }
        let mut waiting = second_log.waiting.drain(..);
        second_log.leader = waiting.next();
        second_log.covered.extend(waiting);
        if let Some(leader) = second_log.leader {
            self.clock.wake(leader);
        }
    }
}
