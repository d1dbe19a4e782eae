//! Core selection: where a woken thread runs.
//!
//! Source: the recording (`WakeupRules`, `Session::cores`). A thread wakes on the core where it ran last,
//! since kernels keep a thread near its caches; at first that is its core in one burst of the recording.
//! Whether it moves when that core is busy, and whether an idle core steals waiting threads, differs between
//! kernels and machines; both are probabilities from the recording. Not modelled: periodic load balancing,
//! hardware threads of one core, caches shared by cores.

use tierwise_device::Nanos;
use tierwise_work::Waker;

use crate::kernel::events::Event;
use crate::kernel::session::{CLIENT, NONE};
use crate::kernel::simulation::Simulation;
use crate::scheduler::run_queue::is_drawn;

impl Simulation<'_> {
    /// Sets all home cores to those of one random burst. On a machine with more cores, and for further copies of the
    /// sessions, home cores are spread.
    pub(crate) fn assign_home_cores(&mut self) {
        let program = self.program;
        let bursts = program.sessions.iter().map(|routine| routine.cores.len());
        let burst = self.random.below(bursts.max().unwrap_or(0).max(1));
        let (of, cores) = (program.work.cores.max(1), self.cores.count() as u32);
        for (index, session) in (0..).zip(&mut self.sessions) {
            let routine = &program.sessions[session.program_index as usize];
            let moved = session.set + of * (index % (cores / of).max(1));
            let client = routine
                .thread
                .and_then(|client| program.work.client_cores.get(&client));
            let server = core_in(&routine.cores, burst);
            let client = client.and_then(|client| core_in(client, burst));
            session.home = [server, client]
                .map(|core| core.map_or(NONE, |core| (u32::from(core) + moved) % cores));
        }
    }

    /// Selects the core for a waking thread.
    pub(crate) fn select_core(&mut self, index: u32, thread: usize) -> u32 {
        let home = self.session(index).home[thread];
        if home == NONE {
            return self.any_core();
        }
        let idle = self.cores.last_idle().filter(|_| !self.cores.is_idle(home));
        let Some(core) = idle else { return home };
        let idle_ns = self.now - self.cores.left_at(core);
        let stays = self.program.work.wakeups.same_core_share(idle_ns);
        if self.is_drawn(stays) { home } else { core }
    }

    /// An idle core, else the one with the shortest run queue.
    pub(crate) fn any_core(&self) -> u32 {
        let idle = self.cores.last_idle();
        idle.unwrap_or_else(|| self.cores.shortest_queue())
    }

    /// Steals a waiting thread for an idle core, unless the kernel leaves it where it is.
    pub(crate) fn steal_waiting(&mut self) -> Option<u32> {
        let leaves = self.program.work.wakeups.no_pull_share();
        if !self.cores.any_waiting() || self.is_drawn(leaves) {
            return None;
        }
        self.cores.steal()
    }

    /// Latency of a wake-up on a core that has been idle for this time.
    pub(crate) fn wakeup_ns(&self, idle_ns: Nanos) -> Nanos {
        self.program.work.wakeups.start_latency_ns(idle_ns)
    }

    /// Puts a woken thread into a busy core's run queue; it may preempt the running one. The waker counts as the
    /// runner where the waking thread still holds the core between two bursts.
    pub(crate) fn enqueue_or_preempt(&mut self, index: u32, core: u32, by: Waker) {
        self.cores.enqueue(core, index, false);
        let by = match by {
            Waker::Another if self.cores.is_between_bursts(core) => Waker::Runner,
            _ => by,
        };
        let client = usize::from(self.session(index).thread == CLIENT);
        let picks = &self.program.work.preemption;
        let (share, preempt_after_ns) = (
            picks.preempt_share[by as usize][client],
            picks.preempt_after_ns[by as usize],
        );
        if !self.is_drawn(share) {
            return;
        }
        if let Some(at) = self
            .cores
            .preempt_at(core, index, self.now + preempt_after_ns)
        {
            self.events.push(at, Event::Core(core));
        }
    }

    fn is_drawn(&mut self, share: f64) -> bool {
        is_drawn(&mut self.random, share)
    }
}

/// The core in a burst, or in the nearest burst that has one.
fn core_in(cores: &[Option<u16>], burst: usize) -> Option<u16> {
    let known = cores.iter().enumerate();
    let known = known.filter_map(|(at, core)| Some((at.abs_diff(burst), (*core)?)));
    known.min().map(|(_, core)| core)
}
