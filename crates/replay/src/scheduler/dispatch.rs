//! Dispatches threads of sessions to cores: wake-ups, slices, preemption, cost of cold caches.

use tierwise_device::Nanos;
use tierwise_work::{TimeCategory, Waker};

use crate::kernel::events::Event;
use crate::kernel::session::{CLIENT, NONE, Resume, SERVER};
use crate::kernel::simulation::Simulation;
use crate::scheduler::cores::BurstEnd;

impl Simulation<'_> {
    /// A session's thread needs a core for `base_ns`, with warm caches at the recorded speed.
    pub(crate) fn request_core(&mut self, index: u32, thread: usize, base_ns: Nanos, then: Resume) {
        let session = self.session(index);
        session.resume = then;
        session.pending_ns = base_ns;
        session.warmup_pending = true;
        let core = session.core;
        if core == NONE || session.thread != thread {
            return self.wake(index, thread);
        }
        if !self.cores.must_yield(core) {
            return self.dispatch(index, core, 0);
        }
        self.apply_cache_warmup(index, core, 0);
        self.cores.enqueue(core, index, true);
        self.set_queued(index);
        self.leave_core(index);
    }

    /// Wakes a session's thread. If the session's other thread is on a core, it is the waker and leaves that core.
    fn wake(&mut self, index: u32, thread: usize) {
        let by = self.session(index).core;
        let core = self.select_core(index, thread);
        self.leave_core(index);
        let session = self.session(index);
        session.thread = thread;
        let awake_ns = std::mem::take(&mut session.head_start_ns);
        let woken_by_kernel = std::mem::take(&mut session.woken_by_kernel);
        if !self.cores.claim(core) {
            self.set_queued(index);
            let by = match woken_by_kernel {
                true => Waker::Kernel,
                false if core == by => Waker::Runner,
                false => Waker::Another,
            };
            return self.enqueue_or_preempt(index, core, by);
        }
        let wakes_ns = match core == by {
            true => 0,
            false => self.wakeup_ns(self.now - self.cores.left_at(core)),
        };
        self.dispatch(index, core, wakes_ns.saturating_sub(awake_ns.into()));
    }

    /// Background load needs a core for `busy_ns`, whatever the processor's speed.
    pub(crate) fn request_core_for_background(&mut self, index: u32, busy_ns: Nanos) {
        let session = self.session(index);
        session.pending_ns = busy_ns;
        session.warmup_pending = false;
        self.wake(index, SERVER);
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

    /// Runs a session on a core that it owns, after the core's wake-up latency.
    pub(crate) fn dispatch(&mut self, index: u32, core: u32, wakes_ns: Nanos) {
        self.apply_cache_warmup(index, core, wakes_ns);
        if self.session(index).core != core {
            self.cores.begin_slice(core);
        }
        if wakes_ns > 0 {
            self.set_queued(index);
        }
        let session = self.session(index);
        session.core = core;
        session.home[session.thread] = core;
        let (pending_ns, client) = (session.pending_ns, session.thread == CLIENT);
        let starts = self.now + wakes_ns;
        self.set_activity_from(
            index,
            if client {
                TimeCategory::Client
            } else {
                TimeCategory::Cpu
            },
            starts,
        );
        let ends = self.cores.run(starts, core, index, pending_ns);
        self.events.push(ends, Event::Core(core));
    }

    /// Adds the cost of the core's cold caches to the session's processor time, by how long no recorded
    /// thread ran there.
    fn apply_cache_warmup(&mut self, index: u32, core: u32, wakes_ns: Nanos) {
        if !std::mem::replace(&mut self.session(index).warmup_pending, false) {
            return;
        }
        let idle_ns = match self.session(index).core == core {
            true => 0,
            false => self.now + wakes_ns - self.cores.left_at(core),
        };
        let (speed, cost) = (self.cpu_speed, self.program.work.cpu);
        let warm_ns = self.session(index).pending_ns as f64;
        let client = self.session(index).thread == CLIENT;
        let coldness = self.cores.coldness(core);
        *coldness = cost.after_idle(*coldness, idle_ns);
        let took_ns = cost.run(warm_ns, *coldness * cost.share(client)).0;
        *coldness = cost.run(warm_ns, *coldness).1;
        self.session(index).pending_ns = ((took_ns / speed) as Nanos).max(1);
    }

    /// Takes a session off its core, if it has one.
    pub(crate) fn leave_core(&mut self, index: u32) {
        let core = std::mem::replace(&mut self.session(index).core, NONE);
        if core == NONE {
            return;
        }
        if self.session(index).program_index != self.program.background_load {
            self.cores.note_left(self.now, core);
        }
        self.dispatch_next(core);
    }

    /// Gives a free core to a waiting session, else makes it idle.
    pub(crate) fn dispatch_next(&mut self, core: u32) {
        let picks = &self.program.work.preemption;
        let next = self.cores.next_for(core, picks, &mut self.random);
        let next = next.or_else(|| self.steal_waiting());
        match next {
            Some(next) => self.dispatch(next, core, 0),
            None => self.cores.idle(self.now, core),
        }
    }

    /// A burst or a slice on a core ends.
    pub(crate) fn end_cpu_burst(&mut self, core: u32) {
        match self.cores.end_cpu_burst(self.now, core) {
            BurstEnd::Continues(until) => self.events.push(until, Event::Core(core)),
            BurstEnd::Stale => {}
            BurstEnd::Preempted { session, left_ns } => {
                self.session(session).pending_ns = left_ns;
                self.session(session).core = NONE;
                self.cores.enqueue(core, session, true);
                self.set_queued(session);
                self.dispatch_next(core);
            }
            BurstEnd::Done(session) => self.resume(session),
        }
    }
}
