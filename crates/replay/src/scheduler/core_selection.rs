//! On which core a thread runs that wakes.
//!
//! Source: the recording (`WakeRules`). A thread wakes on the core where it ran in the recording, for kernels leave it
//! where its caches are; whether it goes elsewhere where others run there, and whether a core that has nothing to do
//! takes over who waits for another one, differs between kernels and machines, so they are shares as recorded. Not
//! modelled: balancing that takes its time, hardware threads of one core, caches that cores share.

use tierwise_device::Nanos;
use tierwise_work::Waker;

use crate::kernel::events::Event;
use crate::kernel::session::{CLIENT, NONE};
use crate::kernel::simulation::Simulation;
use crate::scheduler::run_queue::is_drawn;

impl Simulation<'_> {
    /// A thread of a session ran on this core in the recording, and is at home there from now on. On a machine of more
    /// cores, and of further sets of sessions, others than in the recording are shared.
    pub(crate) fn set_home_core(&mut self, index: u32, thread: usize, recorded: u16) {
        let (of, cores) = (self.program.work.cores.max(1), self.cores.count() as u32);
        let session = self.session(index);
        // Every burst comes here: no division where there is nothing to divide.
        let moved = match cores < 2 * of {
            true => 0,
            false => of * (index % (cores / of)),
        };
        let core = u32::from(recorded) + moved + session.set;
        session.home[thread] = if core < cores { core } else { core % cores };
    }

    /// The core for a session's thread that wakes.
    pub(crate) fn select_core(&mut self, index: u32, thread: usize) -> u32 {
        let home = self.session(index).home[thread];
        if home == NONE {
            return self.any_core();
        }
        let idle = self.cores.last_idle().filter(|_| !self.cores.is_idle(home));
        let Some(core) = idle else { return home };
        let idle_ns = self.now - self.cores.left_at(core);
        let stays = self.program.work.wakes.stays_share(idle_ns);
        if self.is_drawn(stays) { home } else { core }
    }

    /// A core that idles, or the one for which fewest wait.
    pub(crate) fn any_core(&self) -> u32 {
        let idle = self.cores.last_idle();
        idle.unwrap_or_else(|| self.cores.shortest_queue())
    }

    /// Whoever waits for another core, for one that has nothing to do, unless that leaves him there.
    pub(crate) fn steal_waiting(&mut self) -> Option<u32> {
        let leaves = self.program.work.wakes.leaves_share();
        if !self.cores.any_waiting() || self.is_drawn(leaves) {
            return None;
        }
        self.cores.steal()
    }

    /// How long a core that has idled for so long takes to start a thread.
    pub(crate) fn wakeup_ns(&self, idle_ns: Nanos) -> Nanos {
        self.program.work.wakes.starts_ns(idle_ns)
    }

    /// A thread that woke waits for its core, where another runs, or takes that. Woken by who ran there is a server's
    /// thread that its client wakes there, or a client's, though who runs now may be the next already.
    pub(crate) fn enqueue_or_preempt(&mut self, index: u32, core: u32, by: Waker) {
        self.cores.enqueue(core, index, false);
        let by = match by {
            Waker::Another if self.cores.is_between_bursts(core) => Waker::Runner,
            _ => by,
        };
        let client = usize::from(self.session(index).thread == CLIENT);
        let picks = &self.program.work.picks;
        let (share, takes_ns) = (
            picks.takes[by as usize][client],
            picks.takes_ns[by as usize],
        );
        if !self.is_drawn(share) {
            return;
        }
        if let Some(at) = self.cores.preempt_at(core, index, self.now + takes_ns) {
            self.events.push(at, Event::Core(core));
        }
    }

    fn is_drawn(&mut self, share: f64) -> bool {
        is_drawn(&mut self.random, share)
    }
}
