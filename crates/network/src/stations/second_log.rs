//! A second log that commits wait for, as MariaDB's binary log: one session syncs it for all that wait.
//!
//! Models: who comes while a sync is under way waits for its end; then the first of those that wait syncs for all of
//! them. Leaves out: processor time of waking them. Source: sql/log.cc, `MYSQL_BIN_LOG::trx_group_commit_leader`.

use tierwise_recording::Role;
use tierwise_work::TimeCategory;

use crate::kernel::clock::TaskId;
use crate::kernel::machine::Machine;
use crate::kernel::task::Task;
use crate::stations::sync::SyncWrites;

/// Sessions at the second log.
#[derive(Debug, Default)]
pub(crate) struct SecondLog {
    /// The session that syncs.
    leader: Option<TaskId>,
    /// Sessions whose commits the sync under way covers.
    covered: Vec<TaskId>,
    /// Sessions that came later.
    waiting: Vec<TaskId>,
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
        let writes = SyncWrites::Recorded { role, script };
        self.run_sync(writes, true).await;
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
