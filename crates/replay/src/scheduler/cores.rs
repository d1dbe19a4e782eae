//! Cores: servers of one queue, in order of arrival, with time slices.
//!
//! Models: a wait for any of `c` equal cores; a session that has used its slice gives way to those that wait. Leaves
//! out: which core (caches, affinity), the time an idle core takes to start, preemption by a thread that wakes, nice
//! values, clock frequencies. So a short run behind long ones waits up to a slice, where a kernel would let it pass. On
//! 26 recorded cases these, replayed as recorded, made predictions worse (docs/evidence/replay.md).
//!
//! Source of the slice: Linux's EEVDF, `base_slice_ns` 0.75 ms × (1 + log2(cores)), at most 3 ms for 8 cores or more
//! (kernel/sched/fair.c).

use std::collections::VecDeque;

use tierwise_device::Nanos;

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
}

/// One core.
#[derive(Clone, Debug, Default)]
struct Core {
    running: Option<Running>,
    /// Rest of the running session's slice.
    slice_left_ns: Nanos,
}

/// The cores.
#[derive(Debug)]
pub(crate) struct Cores {
    cores: Vec<Core>,
    /// Idle cores, with the time since which each is; the latest last.
    idle: Vec<(Nanos, u32)>,
    /// Sessions that wait for a core.
    waiting: VecDeque<u32>,
    slice_ns: Nanos,
    busy_ns: u64,
}

impl Cores {
    pub(crate) fn new(count: u32) -> Self {
        Self {
            cores: vec![Core::default(); count as usize],
            idle: (0..count).map(|core| (0, core)).collect(),
            waiting: VecDeque::new(),
            slice_ns: SLICE_NS * Nanos::from(1 + count.ilog2().min(MAX_DOUBLINGS)),
            busy_ns: 0,
        }
    }

    /// Takes the core that became idle last, if one is idle.
    pub(crate) fn claim(&mut self) -> Option<u32> {
        self.idle.pop().map(|(_, core)| core)
    }

    /// Since when that core is idle.
    pub(crate) fn idle_since(&self) -> Option<Nanos> {
        self.idle.last().map(|&(since, _)| since)
    }

    /// The time slice.
    pub(crate) fn slice_ns(&self) -> Nanos {
        self.slice_ns
    }

    /// Enqueues a session.
    pub(crate) fn enqueue(&mut self, session: u32) {
        self.waiting.push_back(session);
    }

    /// The session that has waited longest gets the core; none if the core is idle now.
    pub(crate) fn next_for(&mut self, now: Nanos, core: u32) -> Option<u32> {
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.idle.push((now, core));
        }
        debug_assert!(self.idle.len() <= self.cores.len());
        next
    }

    /// Starts a new slice.
    pub(crate) fn begin_slice(&mut self, core: u32) {
        self.cores[core as usize].slice_left_ns = self.slice_ns;
    }

    /// Whether the running session must yield: its slice is over and others wait.
    pub(crate) fn must_yield(&self, core: u32) -> bool {
        self.cores[core as usize].slice_left_ns == 0 && !self.waiting.is_empty()
    }

    /// Runs a session on its core; the time of the core's event.
    pub(crate) fn run(&mut self, now: Nanos, core: u32, session: u32, left_ns: Nanos) -> Nanos {
        let core = &mut self.cores[core as usize];
        if core.slice_left_ns == 0 {
            core.slice_left_ns = self.slice_ns;
        }
        let burst_ns = left_ns.min(core.slice_left_ns);
        core.slice_left_ns -= burst_ns;
        debug_assert!(core.running.is_none(), "a core runs one session");
        core.running = Some(Running {
            session,
            left_ns,
            since: now,
            burst_ns,
        });
        now + burst_ns
    }

    /// Handles a core's event; none if nothing runs there.
    pub(crate) fn end_cpu_burst(&mut self, now: Nanos, core: u32) -> Option<BurstEnd> {
        let running = self.cores[core as usize].running.take()?;
        self.busy_ns += now - running.since;
        let (session, left_ns) = (running.session, running.left_ns - running.burst_ns);
        Some(if left_ns == 0 {
            BurstEnd::Done(session)
        } else if self.waiting.is_empty() {
            BurstEnd::Continues(self.run(now, core, session, left_ns))
        } else {
            BurstEnd::Preempted { session, left_ns }
        })
    }

    /// Discards busy time until `now`.
    pub(crate) fn reset_busy_time(&mut self, now: Nanos) {
        self.busy_ns = 0;
        for running in self
            .cores
            .iter_mut()
            .filter_map(|core| core.running.as_mut())
        {
            let ran_ns = now - running.since;
            running.burst_ns -= ran_ns;
            running.left_ns -= ran_ns;
            running.since = now;
        }
    }

    /// Utilisation of the cores during the last `elapsed_ns`.
    pub(crate) fn busy_share(&self, now: Nanos, elapsed_ns: Nanos) -> f64 {
        let running = self.cores.iter().filter_map(|core| core.running);
        let busy_ns = self.busy_ns + running.map(|running| now - running.since).sum::<u64>();
        busy_ns as f64 / (elapsed_ns.max(1) as f64 * self.cores.len() as f64)
    }
}
