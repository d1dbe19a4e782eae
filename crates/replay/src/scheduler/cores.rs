//! Cores, each with a run queue and time slices. `core_selection.rs` chooses the core, `run_queue.rs` the
//! next session.
//!
//! Source of the slice: Linux's EEVDF, `base_slice_ns` 0.75 ms × (1 + log2(cores)), at most 3 ms for 8 cores or more
//! (kernel/sched/fair.c). Not modelled: nice values, simultaneous multithreading, clock frequencies.

use std::collections::BTreeSet;

use tierwise_device::Nanos;
use tierwise_device::random::SplitMix;
use tierwise_work::PreemptionRules;

use crate::scheduler::run_queue::RunQueue;

const SLICE_NS: Nanos = 750_000;
const MAX_DOUBLINGS: u32 = 3;

/// The session running on a core.
#[derive(Clone, Copy, Debug)]
struct Running {
    session: u32,
    left_ns: Nanos,
    since: Nanos,
    /// Length of the current burst.
    burst_ns: Nanos,
    /// When the burst ends: the core's event at that time is the valid one.
    ends: Nanos,
}

/// How a burst ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BurstEnd {
    /// The session has finished its work.
    Done(u32),
    /// The slice is over and other sessions wait.
    Preempted { session: u32, left_ns: Nanos },
    /// The session continues until the core's next event: no session waits.
    Continues(Nanos),
    /// The event is stale: the burst was shortened before.
    Stale,
}

/// One core.
#[derive(Debug, Default)]
struct Core {
    running: Option<Running>,
    /// Rest of the running session's slice.
    slice_left_ns: Nanos,
    /// Since when it has been idle; none while it is busy.
    idle_since: Option<Nanos>,
    /// When a recorded thread last left it.
    left_at: Nanos,
    /// How cold its caches are; see [`tierwise_work::WarmupCost`].
    coldness: f64,
    queue: RunQueue,
}

/// The cores.
#[derive(Debug)]
pub(crate) struct Cores {
    cores: Vec<Core>,
    /// Idle cores by the time they became idle.
    idle: BTreeSet<(Nanos, u32)>,
    /// Number of waiting sessions.
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
            slice_ns: SLICE_NS * Nanos::from(1 + count.ilog2().min(MAX_DOUBLINGS)),
            busy_ns: 0,
        }
    }

    /// Notes that a recorded thread leaves a core. I/O threads and background load do not count: recordings do not
    /// show them, so a core idles there although they run.
    pub(crate) fn note_left(&mut self, now: Nanos, core: u32) {
        self.cores[core as usize].left_at = now;
    }

    /// When a thread of a session last left a core.
    pub(crate) fn left_at(&self, core: u32) -> Nanos {
        self.cores[core as usize].left_at
    }

    /// How cold the caches of a core are.
    pub(crate) fn coldness(&mut self, core: u32) -> &mut f64 {
        &mut self.cores[core as usize].coldness
    }

    /// Claims an idle core; whether it was idle.
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

    /// The core with the shortest run queue.
    pub(crate) fn shortest_queue(&self) -> u32 {
        let length = |&index: &u32| self.cores[index as usize].queue.len();
        (0..self.cores.len() as u32).min_by_key(length).unwrap_or(0)
    }

    /// Number of cores.
    pub(crate) fn count(&self) -> usize {
        self.cores.len()
    }

    /// The time slice.
    pub(crate) fn slice_ns(&self) -> Nanos {
        self.slice_ns
    }

    /// Enqueues a session that woke, or `lost` the core.
    pub(crate) fn enqueue(&mut self, core: u32, session: u32, lost: bool) {
        self.waiting += 1;
        self.cores[core as usize].queue.push(session, lost);
    }

    /// A waiting session preempts the running one at `at`, unless the running one leaves before; returns the
    /// time of the core's new event.
    pub(crate) fn preempt_at(&mut self, core: u32, session: u32, at: Nanos) -> Option<Nanos> {
        let core = &mut self.cores[core as usize];
        core.queue.set_preemptor(session);
        let running = core.running.as_mut()?;
        let at = at.max(running.since);
        // An earlier interrupt or preemption stays in force.
        if at >= running.ends || running.ends != running.since + running.burst_ns {
            return None;
        }
        core.slice_left_ns += running.ends - at;
        running.burst_ns = at - running.since;
        running.ends = at;
        Some(at)
    }

    /// Whether the core's owner is between two bursts.
    pub(crate) fn is_between_bursts(&self, core: u32) -> bool {
        self.cores[core as usize].running.is_none()
    }

    /// Takes the next session from a free core's run queue.
    pub(crate) fn next_for(
        &mut self,
        core: u32,
        rules: &PreemptionRules,
        random: &mut SplitMix,
    ) -> Option<u32> {
        let next = self.cores[core as usize].queue.pop_next(rules, random);
        self.waiting -= usize::from(next.is_some());
        next
    }

    /// Whether any session waits for a core.
    pub(crate) fn any_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Takes the session that has waited longest from the longest queue.
    pub(crate) fn steal(&mut self) -> Option<u32> {
        let longest = self.cores.iter_mut().max_by_key(|core| core.queue.len());
        let next = longest.and_then(|core| core.queue.pop_first());
        self.waiting -= usize::from(next.is_some());
        next
    }

    /// Makes a core idle.
    pub(crate) fn idle(&mut self, now: Nanos, core: u32) {
        self.cores[core as usize].idle_since = Some(now);
        self.idle.insert((now, core));
    }

    /// Starts a new slice.
    pub(crate) fn begin_slice(&mut self, core: u32) {
        self.cores[core as usize].slice_left_ns = self.slice_ns;
    }

    /// Whether the running session must yield: a waiting session preempts it, or its slice is over and others
    /// wait.
    pub(crate) fn must_yield(&self, core: u32) -> bool {
        let core = &self.cores[core as usize];
        core.queue.has_preemptor() || (core.slice_left_ns == 0 && core.queue.len() > 0)
    }

    /// Runs a session on its core from `starts` on; the time of the core's event.
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
        });
        starts + burst_ns
    }

    /// Handles a core's event.
    pub(crate) fn end_cpu_burst(&mut self, now: Nanos, core: u32) -> BurstEnd {
        let place = &mut self.cores[core as usize];
        let due = place.running.take_if(|running| running.ends == now);
        let Some(mut running) = due else {
            return BurstEnd::Stale;
        };
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

    /// Discards busy time until `now`.
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

    /// Utilisation of the cores during the last `elapsed_ns`.
    pub(crate) fn busy_share(&self, now: Nanos, elapsed_ns: Nanos) -> f64 {
        let running = self.cores.iter().filter_map(|core| core.running);
        let busy_ns = self.busy_ns
            + running
                .map(|running| now.saturating_sub(running.since))
                .sum::<u64>();
        busy_ns as f64 / (elapsed_ns.max(1) as f64 * self.cores.len() as f64)
    }
}
