//! Work that no client waits for: paced sessions, and the kernel's write-back.

use tierwise_device::Nanos;
use tierwise_recording::Role;
use tierwise_work::Pace;

use crate::events::Event;
use crate::jobs::{Job, Then, Writes};
use crate::session::Resume;
use crate::simulation::Simulation;

/// How often the kernel looks for old pages (`dirty_writeback_centisecs`).
const LOOKS_NS: Nanos = 5_000_000_000;
/// Writes of the flusher under way at a time, for each role.
const SWEEP_DEPTH: u32 = 16;

impl Simulation<'_> {
    /// A paced session has done a turn, or is new: waits for its next.
    pub(crate) fn await_next_turn(&mut self, index: u32) {
        let program = self.program;
        let session = self.session(index);
        let script = &program.sessions[session.script as usize];
        let turns = script.turns.len() as u32;
        let (round, turn) = (u64::from(session.turn / turns), session.turn % turns);
        session.turn += 1;
        session.position = script.turns[turn as usize];
        if round > 0 && !self.steady {
            return;
        }
        let start = script.starts[turn as usize];
        if script.pace == Pace::Work {
            let at = start + round * program.period_transactions();
            self.due_by_work.push((at, index));
            return self.begin_due_by_work();
        }
        let at = start + round * program.period_ns();
        self.events.push(self.now.max(at), Event::Begin(index));
    }

    /// Begins the turns that are due after so many transactions.
    pub(crate) fn begin_due_by_work(&mut self) {
        let mut at = 0;
        while let Some(&(due, session)) = self.due_by_work.get(at) {
            if due <= self.transactions {
                self.due_by_work.swap_remove(at);
                self.events.push(self.now, Event::Begin(session));
            } else {
                at += 1;
            }
        }
    }

    /// A paced session's turn begins.
    pub(crate) fn begin_turn(&mut self, index: u32) {
        self.session(index).resume = Resume::Next;
        self.proceed(index);
    }

    /// The kernel looks for old pages.
    pub(crate) fn look_for_old_pages(&mut self) {
        self.events.push(self.now + LOOKS_NS, Event::WriteBack);
        self.lose_patience();
        self.look_for_old_pages_now();
    }

    /// The same, woken because there are too many dirty ones.
    pub(crate) fn look_for_old_pages_now(&mut self) {
        self.cache.begin_sweeps(self.now);
        for role in Role::ALL {
            self.sweep(role);
        }
    }

    /// Keeps as many writes of a role under way as the flusher does.
    fn sweep(&mut self, role: Role) {
        while self.sweeping[role as usize] < SWEEP_DEPTH {
            let Some((sector, sectors)) = self.cache.next_sweep(role) else {
                return;
            };
            let job = self
                .jobs
                .add(Job::new(Then::Sweep(role), Writes::None, role));
            let sent = self
                .storage
                .send_behind(self.now, job, role, sector, sectors);
            self.jobs.get(job).pending = sent;
            self.sweeping[role as usize] += 1;
        }
    }

    /// A write of the flusher is done.
    pub(crate) fn swept(&mut self, role: Role) {
        self.sweeping[role as usize] -= 1;
        if self.cache.presses() {
            self.cache.begin_sweeps(self.now);
        }
        self.sweep(role);
        while !self.cache.is_full() {
            let Some(session) = self.throttled.pop_front() else {
                return;
            };
            self.resume(session);
        }
    }
}
