//! Executes the operations of sessions.

use tierwise_device::Nanos;
use tierwise_work::{Pace, Reuse, TimeCategory};

use crate::kernel::events::Event;
use crate::kernel::session::{Resume, SERVER};
use crate::kernel::simulation::Simulation;
use crate::program::operation::Operation;

impl Simulation<'_> {
    /// Executes operations of a session until it blocks.
    pub(crate) fn proceed(&mut self, index: u32) {
        while self.step(index) {}
    }

    /// Executes a session's next operation; whether it can continue at once.
    fn step(&mut self, index: u32) -> bool {
        let program = self.program;
        if self.sessions[index as usize].program_index != program.background_load {
            self.progress.note_action(self.now);
        }
        let session = self.session(index);
        let routine = &program.sessions[session.program_index as usize];
        let Some(op) = routine.ops.get(session.position as usize).copied() else {
            let goes = self.restart_session(index);
            return goes || self.block(index);
        };
        session.position += 1;
        match op {
            Operation::Cpu { base_ns, client } => {
                session.between_transactions &= client;
                if client {
                    self.request_client(index, base_ns.into());
                } else {
                    self.request_core(index, SERVER, base_ns.into(), Resume::Next);
                }
                false
            }
            Operation::Delay { time_ns, timer } => self.away(index, time_ns, timer),
            Operation::Reuse(reuse) => {
                session.reuse = reuse;
                true
            }
            Operation::File {
                access,
                role,
                sectors,
                sector,
            } => self.access_file(index, access, role, sector, sectors),
            Operation::Sync { role, script } => {
                self.sync(index, role, script);
                self.block(index)
            }
            Operation::Append { size_bytes } => self.append(index, size_bytes),
            Operation::Frames { count } => self.append_frames(index, count),
            Operation::RecreateLog => self.recreate_log(),
            Operation::Checkpoint(part) => self.checkpoint(index, part),
            Operation::Commit => self.commit(index),
            Operation::AwaitLog => self.await_log(index),
            Operation::Acknowledge => self.acknowledge_replica(),
            Operation::Lock { lock } => self.take_lock(index, lock),
            Operation::Stream { sectors } => {
                self.session(index).stream_sectors = sectors;
                true
            }
            Operation::Signal { number } => {
                let (now, signal) = (self.now, (index, number));
                self.dependencies
                    .signal(signal, &self.sessions, now, &mut self.events);
                true
            }
            Operation::Await { number } => {
                let signal = (index, number);
                if self.dependencies.is_given(signal, &self.sessions) {
                    return true;
                }
                self.set_activity(index, TimeCategory::Other);
                self.block(index)
            }
            Operation::BackgroundRun => {
                self.block(index);
                self.request_core_for_background(index, self.cores.slice_ns());
                false
            }
            Operation::BackgroundRest => self.schedule_background_slice(index),
            Operation::Drain => self.drain(index),
            Operation::Reply { ends } => self.reply(index, ends),
            Operation::EndTurn { ends } => self.end_turn(index, ends),
        }
    }

    /// Blocks a session, which leaves its core. Always false: it cannot continue at once.
    pub(crate) fn block(&mut self, index: u32) -> bool {
        self.leave_core(index);
        false
    }

    fn away(&mut self, index: u32, time_ns: Nanos, timer: bool) -> bool {
        if !timer && self.skips_think_time(index) {
            return true;
        }
        self.set_activity(
            index,
            if timer {
                TimeCategory::Sleep
            } else {
                TimeCategory::Client
            },
        );
        let now = self.now;
        let session = self.session(index);
        // A transaction begins with its first request.
        if !timer && session.transaction_began == now {
            session.transaction_began += time_ns;
        }
        self.events.push(now + time_ns, Event::Wake(index));
        self.block(index)
    }

    fn append(&mut self, index: u32, size_bytes: u32) -> bool {
        if let Some(log) = &mut self.log {
            log.inserted += u64::from(size_bytes);
            let appended = log.inserted;
            self.session(index).appended = appended;
        }
        true
    }

    /// Replies to the client.
    fn reply(&mut self, index: u32, ends: bool) -> bool {
        let now = self.now;
        let session = self.session(index);
        session.replied = true;
        session.between_transactions = ends;
        let latency_ns = now - session.transaction_began;
        if ends && session.counts {
            self.metrics.add_transaction(latency_ns);
        }
        self.set_activity(index, TimeCategory::Client);
        true
    }

    fn end_turn(&mut self, index: u32, ends: bool) -> bool {
        let now = self.now;
        self.session(index).reuse = Reuse::UNKNOWN;
        if ends {
            self.release_locks(index);
            self.take_snapshot(index);
        }
        if !self.session(index).counts {
            return self.end_background_turn(index);
        }
        self.metrics.turns += 1;
        if ends {
            self.end_transaction();
            self.begin_due_by_work();
        }
        self.set_activity(index, TimeCategory::Runnable);
        let session = self.session(index);
        session.replied = false;
        if ends {
            session.transaction_began = now;
            return self.await_arrival(index);
        }
        true
    }

    /// Background load wants slices at regular intervals and catches up on missed ones.
    fn schedule_background_slice(&mut self, index: u32) -> bool {
        let (now, period_ns) = (self.now, self.background_period_ns);
        let session = self.session(index);
        session.position = 0;
        session.cycle += 1;
        let next = session.cycle_began + period_ns;
        session.cycle_began = next;
        self.events.push(next.max(now), Event::Wake(index));
        self.block(index)
    }

    fn end_background_turn(&mut self, index: u32) -> bool {
        let routine = &self.program.sessions[self.session(index).program_index as usize];
        if routine.pace == Pace::Loop {
            return true;
        }
        self.block(index);
        self.await_next_turn(index);
        false
    }
}
