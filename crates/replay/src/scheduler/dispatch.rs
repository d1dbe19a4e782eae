//! Sessions on cores.

use tierwise_device::Nanos;
use tierwise_work::{Part, Waker};

use crate::kernel::events::Event;
use crate::kernel::session::{CLIENT, NONE, Resume, SERVER};
use crate::kernel::simulation::Simulation;
use crate::scheduler::cores::Ended;

impl Simulation<'_> {
    /// A thread of a session shall run so long, on the recorded processor and right after it ran before.
    pub(crate) fn want_core(&mut self, index: u32, thread: usize, base_ns: Nanos, then: Resume) {
        let session = self.session(index);
        session.resume = then;
        session.pending_ns = base_ns;
        session.fresh = true;
        let core = session.core;
        if core == NONE || session.thread != thread {
            return self.wake(index, thread);
        }
        if !self.cores.must_yield(core) {
            return self.dispatch(index, core, 0);
        }
        self.scale(index, core, 0);
        self.cores.enqueue(core, index, true);
        self.does_queue(index);
        self.leave_core(index);
    }

    /// A thread of a session can run from now on, woken by the other one if that is on a core, which then leaves it.
    fn wake(&mut self, index: u32, thread: usize) {
        let by = self.session(index).core;
        let core = self.place(index, thread);
        self.leave_core(index);
        let session = self.session(index);
        session.thread = thread;
        let awake_ns = std::mem::take(&mut session.head_start_ns);
        let by_kernel = std::mem::take(&mut session.by_kernel);
        if !self.cores.take(core) {
            self.does_queue(index);
            let by = match by_kernel {
                true => Waker::Kernel,
                false if core == by => Waker::Runner,
                false => Waker::Another,
            };
            return self.contend(index, core, by);
        }
        let wakes_ns = match core == by {
            true => 0,
            false => self.starts_ns(self.now - self.cores.left_at(core)),
        };
        self.dispatch(index, core, wakes_ns.saturating_sub(awake_ns.into()));
    }

    /// Another program's thread wants a core for so long, whatever the processor.
    pub(crate) fn want_core_for_others(&mut self, index: u32, busy_ns: Nanos) {
        let session = self.session(index);
        session.pending_ns = busy_ns;
        session.fresh = false;
        self.wake(index, SERVER);
    }

    /// Notes that a session's thread waits for a core.
    fn does_queue(&mut self, index: u32) {
        let client = self.session(index).thread == CLIENT;
        self.does(index, if client { Part::Client } else { Part::Runnable });
    }

    /// Lets a session run on a core that is its own, once the core is awake.
    pub(crate) fn dispatch(&mut self, index: u32, core: u32, wakes_ns: Nanos) {
        self.scale(index, core, wakes_ns);
        if self.session(index).core != core {
            self.cores.begin_slice(core);
        }
        if wakes_ns > 0 {
            self.does_queue(index);
        }
        let session = self.session(index);
        session.core = core;
        let (pending_ns, client) = (session.pending_ns, session.thread == CLIENT);
        let starts = self.now + wakes_ns;
        self.does_from(index, if client { Part::Client } else { Part::Cpu }, starts);
        let ends = self.cores.run(starts, core, index, pending_ns);
        self.events.push(ends, Event::Core(core));
    }

    /// Works out what a session has to run, from how long its thread did not until the core is awake.
    fn scale(&mut self, index: u32, core: u32, wakes_ns: Nanos) {
        if !std::mem::replace(&mut self.session(index).fresh, false) {
            return;
        }
        let waited_ns = match self.session(index).core == core {
            true => 0,
            false => self.now + wakes_ns - self.off_since(index),
        };
        let (speed, cost) = (self.cpu_speed, self.program.work.cpu);
        let traced = self.traced;
        let warm_ns = self.session(index).pending_ns as f64;
        let client = self.session(index).thread == CLIENT;
        let cold = self.cold(index);
        let (took_ns, left) = cost.run(warm_ns, cost.after_wait(client, *cold, waited_ns));
        *cold = left;
        let session = self.session(index);
        let traced_ns = f64::from(std::mem::take(&mut session.traced_ns));
        let all_ns = took_ns + if traced { traced_ns } else { 0.0 };
        session.pending_ns = ((all_ns / speed) as Nanos).max(1);
    }

    /// A session's core is for others, if it has one.
    pub(crate) fn leave_core(&mut self, index: u32) {
        let core = std::mem::replace(&mut self.session(index).core, NONE);
        if core == NONE {
            return;
        }
        if self.session(index).script != self.program.others {
            self.cores.leave(self.now, core);
        }
        self.goes_off(index);
        self.hand_on(core);
    }

    /// A core is free: for whoever waits for it, or for another.
    fn hand_on(&mut self, core: u32) {
        let picks = &self.program.work.picks;
        let next = self.cores.next_for(core, picks, &mut self.random);
        let next = next.or_else(|| self.pull());
        match next {
            Some(next) => self.dispatch(next, core, 0),
            None => self.cores.idle(self.now, core),
        }
    }

    /// What ran on a core is done, or has had its slice.
    pub(crate) fn end_stretch(&mut self, core: u32) {
        match self.cores.end_stretch(self.now, core) {
            Ended::Goes(until) => self.events.push(until, Event::Core(core)),
            Ended::Nothing => {}
            Ended::Preempted { session, left_ns } => {
                self.session(session).pending_ns = left_ns;
                self.session(session).core = NONE;
                self.cores.enqueue(core, session, true);
                self.does_queue(session);
                self.hand_on(core);
            }
            Ended::Done(session) => self.resume(session),
        }
    }
}
