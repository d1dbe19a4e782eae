//! Cores, each with a run queue, in slices. Who is put where: `core_selection.rs`. Who is next: `run_queue.rs`.
//!
//! Source of the slice: Linux's EEVDF, `base_slice_ns` 0.75 ms × (1 + log2(cores)), at most 3 ms for 8 cores or
//! more (kernel/sched/fair.c). Not modelled: nice values, simultaneous multithreading, clock frequencies.

use std::collections::BTreeSet;

use tierwise_device::Nanos;
use tierwise_device::random::SplitMix;
use tierwise_work::PickRules;

use crate::scheduler::run_queue::RunQueue;

const SLICE_NS: Nanos = 750_000;
const MOST_DOUBLINGS: u32 = 3;

/// What runs on a core.
#[derive(Clone, Copy, Debug)]
struct Running {
    session: u32,
    left_ns: Nanos,
    since: Nanos,
    /// Of the present burst.
    burst_ns: Nanos,
    /// When its end is due: the core's event of that instant.
    ends: Nanos,
    /// What an interrupt took of the core meanwhile: the burst ends so much later.
    interrupted_ns: Nanos,
}

/// What a core's event means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BurstEnd {
    /// The session has done what it had to.
    Done(u32),
    /// Its slice is over and others wait.
    Preempted { session: u32, left_ns: Nanos },
    /// Its slice is over and nobody waits, or it was interrupted; the core's next event.
    Continues(Nanos),
    /// The burst was cut short before.
    Stale,
}

/// One of them.
#[derive(Debug, Default)]
struct Core {
    running: Option<Running>,
    /// What is left of the slice of who runs there.
    slice_left_ns: Nanos,
    /// Since when it has had nothing to do; none while it has.
    idle_since: Option<Nanos>,
    /// When the last thread left it of those that recordings show.
    left_at: Nanos,
    queue: RunQueue,
}

/// The cores.
#[derive(Debug)]
pub(crate) struct Cores {
    cores: Vec<Core>,
    /// Those that have nothing to do, by when they came to that.
    idle: BTreeSet<(Nanos, u32)>,
    /// How many wait for a core.
    waiting: usize,
    slice_ns: Nanos,
    busy_ns: u64,
}

impl Cores {
    pub(crate) fn new(count: u32) -> Self {
        let idle = || Core {
            idle_since: Some(0),
            ..Core::default()
        };
        Self {
            cores: (0..count).map(|_| idle()).collect(),
            idle: (0..count).map(|core| (0, core)).collect(),
            waiting: 0,
            slice_ns: SLICE_NS * Nanos::from(1 + count.ilog2().min(MOST_DOUBLINGS)),
            busy_ns: 0,
        }
    }

    /// A thread of a session leaves a core. Storage's threads and other programs are not recorded, so in recordings a
    /// core idles although they run there.
    pub(crate) fn note_left(&mut self, now: Nanos, core: u32) {
        self.cores[core as usize].left_at = now;
    }

    /// When a thread of a session last left a core.
    pub(crate) fn left_at(&self, core: u32) -> Nanos {
        self.cores[core as usize].left_at
    }

    /// Gives a core to somebody, if it is idle; whether it was.
    pub(crate) fn claim(&mut self, core: u32) -> bool {
        let since = self.cores[core as usize].idle_since.take();
        since.is_some_and(|since| self.idle.remove(&(since, core)))
    }

    /// Whether a core is idle.
    pub(crate) fn is_idle(&self, core: u32) -> bool {
        self.cores[core as usize].idle_since.is_some()
    }

    /// The core that became idle last, if one is.
    pub(crate) fn last_idle(&self) -> Option<u32> {
        self.idle.last().map(|&(_, core)| core)
    }

    /// The core for which fewest wait.
    pub(crate) fn shortest_queue(&self) -> u32 {
        let length = |&index: &u32| self.cores[index as usize].queue.len();
        (0..self.cores.len() as u32).min_by_key(length).unwrap_or(0)
    }

    /// Whether a core is idle.
    pub(crate) fn any_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.cores.len()
    }

    /// Something of higher priority takes a core for so long from whoever runs there.
    pub(crate) fn interrupt(&mut self, core: u32, taken_ns: Nanos) {
        if let Some(running) = &mut self.cores[core as usize].running {
            running.interrupted_ns += taken_ns;
        }
    }

    /// How long a thread runs before another gets its turn.
    pub(crate) fn slice_ns(&self) -> Nanos {
        self.slice_ns
    }

    /// A session's thread woke, or `lost` its core, and waits for that.
    pub(crate) fn enqueue(&mut self, core: u32, session: u32, lost: bool) {
        self.waiting += 1;
        self.cores[core as usize].queue.push(session, lost);
    }

    /// Who waits for a core takes it from whoever runs there at an instant, if that does not leave it before; when the
    /// core's event is due then.
    pub(crate) fn preempt_at(&mut self, core: u32, session: u32, at: Nanos) -> Option<Nanos> {
        let core = &mut self.cores[core as usize];
        core.queue.set_preemptor(session);
        let running = core.running.as_mut()?;
        let at = at.max(running.since);
        // What an interrupt or another that wakes has changed already stays.
        if at >= running.ends || running.ends != running.since + running.burst_ns {
            return None;
        }
        core.slice_left_ns += running.ends - at;
        running.burst_ns = at - running.since;
        running.ends = at;
        Some(at)
    }

    /// Whether who had a core is between two stretches there.
    pub(crate) fn is_between_bursts(&self, core: u32) -> bool {
        self.cores[core as usize].running.is_none()
    }

    /// The next of its queue for a core that is free, if there is one.
    pub(crate) fn next_for(
        &mut self,
        core: u32,
        rules: &PickRules,
        random: &mut SplitMix,
    ) -> Option<u32> {
        let next = self.cores[core as usize].queue.pop_next(rules, random);
        self.waiting -= usize::from(next.is_some());
        next
    }

    /// Whether anybody waits, for whichever core.
    pub(crate) fn any_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Takes whoever has waited first in the longest queue.
    pub(crate) fn steal(&mut self) -> Option<u32> {
        let longest = self.cores.iter_mut().max_by_key(|core| core.queue.len());
        let next = longest.and_then(|core| core.queue.pop_first());
        self.waiting -= usize::from(next.is_some());
        next
    }

    /// A core has nothing to do from now on.
    pub(crate) fn idle(&mut self, now: Nanos, core: u32) {
        self.cores[core as usize].idle_since = Some(now);
        self.idle.insert((now, core));
    }

    /// Begins a slice on a core.
    pub(crate) fn begin_slice(&mut self, core: u32) {
        self.cores[core as usize].slice_left_ns = self.slice_ns;
    }

    /// Whether who runs on a core has had its slice, and others wait.
    pub(crate) fn must_yield(&self, core: u32) -> bool {
        let core = &self.cores[core as usize];
        core.queue.has_preemptor() || (core.slice_left_ns == 0 && core.queue.len() > 0)
    }

    /// Lets a session run on a core that it has, from then on; when the core's event is due.
    pub(crate) fn run(&mut self, starts: Nanos, core: u32, session: u32, left_ns: Nanos) -> Nanos {
        let core = &mut self.cores[core as usize];
        if core.slice_left_ns == 0 {
            core.slice_left_ns = self.slice_ns;
        }
        let burst_ns = left_ns.min(core.slice_left_ns);
        core.slice_left_ns -= burst_ns;
        core.running = Some(Running {
            session,
            left_ns,
            since: starts,
            burst_ns,
            ends: starts + burst_ns,
            interrupted_ns: 0,
        });
        starts + burst_ns
    }

    /// The core's event has come.
    pub(crate) fn end_cpu_burst(&mut self, now: Nanos, core: u32) -> BurstEnd {
        let place = &mut self.cores[core as usize];
        let due = place.running.take_if(|running| running.ends == now);
        let Some(mut running) = due else {
            return BurstEnd::Stale;
        };
        if running.interrupted_ns > 0 {
            let until = now + std::mem::take(&mut running.interrupted_ns);
            running.ends = until;
            place.running = Some(running);
            return BurstEnd::Continues(until);
        }
        self.busy_ns += now - running.since;
        running.left_ns -= running.burst_ns;
        if running.left_ns == 0 {
            return BurstEnd::Done(running.session);
        }
        if place.queue.len() > 0 {
            return BurstEnd::Preempted {
                session: running.session,
                left_ns: running.left_ns,
            };
        }
        BurstEnd::Continues(self.run(now, core, running.session, running.left_ns))
    }

    /// Forgets how busy the cores were until `now`.
    pub(crate) fn reset_busy_time(&mut self, now: Nanos) {
        self.busy_ns = 0;
        for running in self
            .cores
            .iter_mut()
            .filter_map(|core| core.running.as_mut())
        {
            let ran_ns = now.saturating_sub(running.since);
            let ran_ns = ran_ns.min(running.burst_ns);
            running.burst_ns -= ran_ns;
            running.left_ns -= ran_ns;
            running.since = running.since.max(now);
        }
    }

    /// Share of the cores that was busy since it was forgotten, `elapsed_ns` ago.
    pub(crate) fn busy_share(&self, now: Nanos, elapsed_ns: Nanos) -> f64 {
        let running = self.cores.iter().filter_map(|core| core.running);
        let busy_ns = self.busy_ns
            + running
                .map(|running| now.saturating_sub(running.since))
                .sum::<u64>();
        busy_ns as f64 / (elapsed_ns.max(1) as f64 * self.cores.len() as f64)
    }
}
