//! A second log that commits wait for, as MariaDB's binary log: one session syncs it for all that wait.
//!
//! Models: who comes while a sync is under way waits for its end; then the first of those that wait syncs for all of
//! them. Leaves out: processor time of waking them. Source: sql/log.cc, `MYSQL_BIN_LOG::trx_group_commit_leader`.

use tierwise_recording::Role;
use tierwise_work::TimeCategory;

use crate::kernel::events::Event;
use crate::kernel::session::NONE;
use crate::kernel::simulation::Simulation;

/// Sessions at the second log.
#[derive(Debug)]
pub(crate) struct SecondLog {
    /// The session that syncs, or [`NONE`].
    leader: u32,
    /// Sessions whose commits the sync under way covers.
    covered: Vec<u32>,
    /// Sessions that came later, each with the script of its sync.
    waiting: Vec<(u32, u32)>,
}

impl SecondLog {
    pub(crate) fn new() -> Self {
        Self {
            leader: NONE,
            covered: Vec::new(),
            waiting: Vec::new(),
        }
    }
}

impl Simulation<'_> {
    /// A session leads a sync of the second log, or waits for the one under way; whether it leads.
    pub(crate) fn leads_second_log(&mut self, index: u32, script: u32) -> bool {
        if self.second_log.leader == NONE {
            self.second_log.leader = index;
            return true;
        }
        self.second_log.waiting.push((index, script));
        self.set_activity(index, TimeCategory::LogQueue);
        false
    }

    /// A sync of the second log has ended: those that it covered continue, the first of the others leads the next.
    pub(crate) fn second_log_synced(&mut self, role: Role) {
        let now = self.now;
        for covered in self.second_log.covered.drain(..) {
            self.events.push(now, Event::Wake(covered));
        }
        self.second_log.leader = NONE;
        if self.second_log.waiting.is_empty() {
            return;
        }
        let (leader, script) = self.second_log.waiting.remove(0);
        let SecondLog {
            covered, waiting, ..
        } = &mut self.second_log;
        covered.extend(waiting.drain(..).map(|(session, _)| session));
        self.sync(leader, role, script);
    }
}
