//! Sessions on cores.

use tierwise_device::Nanos;

use crate::cores::Ended;
use crate::events::Event;
use crate::program::factor;
use crate::session::{NONE, Resume};
use crate::simulation::Simulation;
use crate::tally::Doing;

/// Index of the server's thread, and of the client's.
pub(crate) const SERVER: usize = 0;
pub(crate) const CLIENT: usize = 1;

impl Simulation<'_> {
    /// A thread of a session shall run so long, on the recorded processor and right after it ran before.
    pub(crate) fn want_core(&mut self, index: u32, thread: usize, base_ns: Nanos, then: Resume) {
        let session = self.session(index);
        session.resume = then;
        session.pending_ns = base_ns;
        session.fresh = true;
        if session.core != NONE && session.thread == thread {
            let core = session.core;
            return self.dispatch(index, core);
        }
        self.leave_core(index);
        self.session(index).thread = thread;
        self.queue_up(index);
    }

    fn queue_up(&mut self, index: u32) {
        if let Some(core) = self.cores.take_idle() {
            return self.dispatch(index, core);
        }
        let thread = self.session(index).thread;
        self.does(
            index,
            if thread == CLIENT {
                Doing::Client
            } else {
                Doing::Runnable
            },
        );
        self.cores.enqueue(index);
    }

    fn dispatch(&mut self, index: u32, core: u32) {
        let (now, speed, cost) = (self.now, self.cpu_speed, self.program.work.cpu);
        let session = self.session(index);
        if session.fresh {
            let waited = if session.core == core {
                0
            } else {
                now - session.off_since[session.thread]
            };
            let ns = session.pending_ns as f64 * factor(cost, waited) / speed;
            session.pending_ns = (ns as Nanos).max(1);
            session.fresh = false;
        }
        session.core = core;
        let (pending_ns, thread) = (session.pending_ns, session.thread);
        self.does(
            index,
            if thread == CLIENT {
                Doing::Client
            } else {
                Doing::Cpu
            },
        );
        let at = self.cores.run(now, core, index, pending_ns);
        self.events.push(at, Event::Core(core));
    }

    /// A session's core is for others, if it has one.
    pub(crate) fn leave_core(&mut self, index: u32) {
        let now = self.now;
        let session = self.session(index);
        let core = std::mem::replace(&mut session.core, NONE);
        if core == NONE {
            return;
        }
        session.off_since[session.thread] = now;
        if let Some(next) = self.cores.next_for(core) {
            self.dispatch(next, core);
        }
    }

    /// What ran on a core is done, or has had its slice.
    pub(crate) fn end_stretch(&mut self, core: u32) {
        match self.cores.end_stretch(self.now, core) {
            Ended::Goes(until) => self.events.push(until, Event::Core(core)),
            Ended::Preempted { session, left_ns } => {
                self.session(session).pending_ns = left_ns;
                self.session(session).core = NONE;
                self.cores.enqueue(session);
                let thread = self.session(session).thread;
                self.does(
                    session,
                    if thread == CLIENT {
                        Doing::Client
                    } else {
                        Doing::Runnable
                    },
                );
                if let Some(next) = self.cores.next_for(core) {
                    self.dispatch(next, core);
                }
            }
            Ended::Done(session) => self.resume(session),
        }
    }
}
