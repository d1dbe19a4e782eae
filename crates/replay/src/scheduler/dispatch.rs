//! Dispatches threads of sessions to cores.

use tierwise_device::Nanos;
use tierwise_work::{TimeCategory, cold_factor};

use crate::kernel::events::Event;
use crate::kernel::session::{CLIENT, NONE, Resume, SERVER};
use crate::kernel::simulation::Simulation;
use crate::scheduler::cores::BurstEnd;

impl Simulation<'_> {
    /// A session's thread needs a core for `base_ns` of the recorded processor.
    pub(crate) fn request_core(&mut self, index: u32, thread: usize, base_ns: Nanos, then: Resume) {
        let recorded = self.program.work.cold_factor;
        let warm_ns = base_ns as f64 / self.cpu_speed / recorded.unwrap_or(1.0);
        let session = self.session(index);
        session.resume = then;
        let core = session.core;
        if core == NONE || session.thread != thread {
            // If the session's other thread is on a core, it is the waker and leaves that core.
            self.leave_core(index);
            let idle_ns = self.cores.idle_since().map_or(0, |since| self.now - since);
            let cold = recorded.map_or(1.0, |_| cold_factor(idle_ns));
            let session = self.session(index);
            session.pending_ns = ((warm_ns * cold) as Nanos).max(1);
            session.thread = thread;
            return self.start_or_enqueue(index);
        }
        session.pending_ns = (warm_ns as Nanos).max(1);
        if !self.cores.must_yield(core) {
            return self.dispatch(index, core);
        }
        self.cores.enqueue(index);
        self.set_queued(index);
        self.leave_core(index);
    }

    /// Runs a session's pending time on an idle core, or lets it wait for one.
    pub(crate) fn start_or_enqueue(&mut self, index: u32) {
        match self.cores.claim() {
            Some(core) => self.dispatch(index, core),
            None => {
                self.cores.enqueue(index);
                self.set_queued(index);
            }
        }
    }

    /// Background load needs a core for `busy_ns`, whatever the processor's speed.
    pub(crate) fn request_core_for_background(&mut self, index: u32, busy_ns: Nanos) {
        let session = self.session(index);
        (session.pending_ns, session.thread) = (busy_ns, SERVER);
        self.start_or_enqueue(index);
    }

    /// Marks a session as waiting for a core.
    fn set_queued(&mut self, index: u32) {
        let client = self.session(index).thread == CLIENT;
        self.set_activity(
            index,
            if client {
                TimeCategory::Client
            } else {
                TimeCategory::Runnable
            },
        );
    }

    /// Runs a session on a core that it owns.
    fn dispatch(&mut self, index: u32, core: u32) {
        if self.session(index).core != core {
            self.cores.begin_slice(core);
        }
        let session = self.session(index);
        session.core = core;
        let (pending_ns, client) = (session.pending_ns, session.thread == CLIENT);
        self.set_activity(
            index,
            if client {
                TimeCategory::Client
            } else {
                TimeCategory::Cpu
            },
        );
        let ends = self.cores.run(self.now, core, index, pending_ns);
        self.events.push(ends, Event::Core(core));
    }

    /// Takes a session off its core, if it has one; the longest waiting session gets it.
    pub(crate) fn leave_core(&mut self, index: u32) {
        let core = std::mem::replace(&mut self.session(index).core, NONE);
        if core != NONE {
            self.pass_core(core);
        }
    }

    fn pass_core(&mut self, core: u32) {
        if let Some(next) = self.cores.next_for(self.now, core) {
            self.dispatch(next, core);
        }
    }

    /// A burst or a slice on a core ends.
    pub(crate) fn end_cpu_burst(&mut self, core: u32) {
        match self.cores.end_cpu_burst(self.now, core) {
            None => {}
            Some(BurstEnd::Continues(until)) => self.events.push(until, Event::Core(core)),
            Some(BurstEnd::Preempted { session, left_ns }) => {
                self.session(session).pending_ns = left_ns;
                self.session(session).core = NONE;
                self.cores.enqueue(session);
                self.set_queued(session);
                self.pass_core(core);
            }
            Some(BurstEnd::Done(session)) => self.resume(session),
        }
    }
}
