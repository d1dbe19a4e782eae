//! Background sessions: they start their turns at recorded times or after the recorded number of
//! transactions.

use tierwise_work::Pace;

use crate::kernel::events::Event;
use crate::kernel::session::Resume;
use crate::kernel::simulation::Simulation;

impl Simulation<'_> {
    /// Schedules the next turn of a paced session.
    pub(crate) fn await_next_turn(&mut self, index: u32) {
        let program = self.program;
        let session = self.session(index);
        let routine = &program.sessions[session.program_index as usize];
        let turns = routine.turns.len() as u32;
        let (round, turn) = (u64::from(session.turn / turns), session.turn % turns);
        session.turn += 1;
        session.position = routine.turns[turn as usize];
        if round > 0 && !self.steady {
            return;
        }
        let start = routine.starts[turn as usize];
        if routine.pace == Pace::Work {
            let at = start + round * program.period_transactions();
            self.due_by_work.push((at, index));
            return self.begin_due_by_work();
        }
        let at = start + round * program.period_ns();
        self.events.push(self.now.max(at), Event::Begin(index));
    }

    /// Starts the turns that are due after this number of transactions.
    pub(crate) fn begin_due_by_work(&mut self) {
        let mut at = 0;
        while let Some(&(due, session)) = self.due_by_work.get(at) {
            if due <= self.metrics.all_transactions() {
                self.due_by_work.swap_remove(at);
                self.events.push(self.now, Event::Begin(session));
            } else {
                at += 1;
            }
        }
    }

    /// Starts a turn of a paced session.
    pub(crate) fn begin_turn(&mut self, index: u32) {
        self.session(index).resume = Resume::Next;
        self.proceed(index);
    }
}
