//! A leader's wait for more commits before its flush.
//!
//! Source: PostgreSQL, `MinimumActiveBackends` (procarray.c): others count that have a transaction number and do not
//! wait for a lock.

use tierwise_work::TimeCategory;

use crate::kernel::events::Event;
use crate::kernel::session::{NONE, Resume};
use crate::kernel::simulation::Simulation;
use crate::program::operation::Operation;

impl Simulation<'_> {
    /// Lets the leader of a flush wait, if the rules and the other sessions ask for it; whether it waits.
    pub(crate) fn wait_for_more_commits(&mut self, leader: u32) -> bool {
        let log = self.log.as_ref();
        let Some(delay) = log.and_then(|log| log.rules.commit_delay) else {
            return false;
        };
        let others = (0..self.sessions.len() as u32).filter(|&index| index != leader);
        let active = others.filter(|&index| self.has_number(index));
        if active.take(delay.siblings as usize).count() < delay.siblings as usize {
            return false;
        }
        let at = self.now + u64::from(delay.time_ns);
        self.set_activity(leader, TimeCategory::Sleep);
        let session = self.session(leader);
        session.resume = Resume::LeadFlush;
        self.events.push(at, Event::Wake(leader));
        self.block(leader);
        true
    }

    /// Whether a session has a transaction number, and waits for no lock: until it runs again after its commit.
    fn has_number(&self, index: u32) -> bool {
        let session = &self.sessions[index as usize];
        if !session.counts || session.between_transactions || session.activity == TimeCategory::Lock
        {
            return false;
        }
        let routine = &self.program.sessions[session.program_index as usize];
        let at = routine.ops.len().min(session.position as usize);
        let (done, rest) = routine.ops.split_at(at);
        let of_transaction = |op: &&Operation| !matches!(op, Operation::EndTurn { ends: true });
        let commits = |op: &Operation| *op == Operation::Commit;
        let has_run = session.core != NONE;
        rest.iter().take_while(of_transaction).any(commits)
            || !has_run && done.iter().rev().take_while(of_transaction).any(commits)
    }
}
