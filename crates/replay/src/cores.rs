//! Cores with one run queue: first come, first served, in slices.
//!
//! Source of the slice: Linux's EEVDF, `base_slice_ns` 0.75 ms × (1 + log2(cores)), at most 3 ms for 8 cores or
//! more (kernel/sched/fair.c). Not modelled: a queue for each core and the balance between them, nice values,
//! wake-up preemption within a slice, simultaneous multithreading, clock frequencies.

use std::collections::VecDeque;

use tierwise_device::Nanos;

const SLICE_NS: Nanos = 750_000;
const MOST_DOUBLINGS: u32 = 3;

/// What runs on a core.
#[derive(Clone, Copy, Debug)]
struct Running {
    session: u32,
    left_ns: Nanos,
    since: Nanos,
    /// Of the present stretch, at the end of which the core's event is due.
    stretch_ns: Nanos,
    /// What an interrupt took of the core meanwhile: the stretch ends so much later.
    interrupted_ns: Nanos,
}

/// What a core's event means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The session has done what it had to.
    Done(u32),
    /// Its slice is over and others wait.
    Preempted { session: u32, left_ns: Nanos },
    /// Its slice is over and nobody waits, or it was interrupted; the core's next event.
    Goes(Nanos),
}

/// The cores.
#[derive(Debug)]
pub(crate) struct Cores {
    running: Vec<Option<Running>>,
    /// What is left of the slice of who runs there.
    slice_left_ns: Vec<Nanos>,
    idle: Vec<u32>,
    queue: VecDeque<u32>,
    slice_ns: Nanos,
    busy_ns: u64,
}

impl Cores {
    pub(crate) fn new(count: u32) -> Self {
        Self {
            running: vec![None; count as usize],
            slice_left_ns: vec![0; count as usize],
            idle: (0..count).rev().collect(),
            queue: VecDeque::with_capacity(256),
            slice_ns: SLICE_NS * Nanos::from(1 + count.ilog2().min(MOST_DOUBLINGS)),
            busy_ns: 0,
        }
    }

    /// A core for someone new, if one is idle.
    pub(crate) fn take_idle(&mut self) -> Option<u32> {
        self.idle.pop()
    }

    /// Whether a core is idle.
    pub(crate) fn any_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.running.len()
    }

    /// Something of higher priority takes a core for so long from whoever runs there.
    pub(crate) fn interrupt(&mut self, core: u32, taken_ns: Nanos) {
        if let Some(running) = &mut self.running[core as usize] {
            running.interrupted_ns += taken_ns;
        }
    }

    /// How long a thread runs before another gets its turn.
    pub(crate) fn slice_ns(&self) -> Nanos {
        self.slice_ns
    }

    pub(crate) fn enqueue(&mut self, session: u32) {
        self.queue.push_back(session);
    }

    /// The next of the queue for a core that is free, or none, and the core is idle from now on.
    pub(crate) fn next_for(&mut self, core: u32) -> Option<u32> {
        let next = self.queue.pop_front();
        if next.is_none() {
            self.idle.push(core);
        }
        next
    }

    /// Begins a slice on a core.
    pub(crate) fn begin_slice(&mut self, core: u32) {
        self.slice_left_ns[core as usize] = self.slice_ns;
    }

    /// Whether who runs on a core has had its slice, and others wait.
    pub(crate) fn must_yield(&self, core: u32) -> bool {
        self.slice_left_ns[core as usize] == 0 && !self.queue.is_empty()
    }

    /// Lets a session run on a core that it has, from then on; when the core's event is due.
    pub(crate) fn run(&mut self, starts: Nanos, core: u32, session: u32, left_ns: Nanos) -> Nanos {
        let slice_left_ns = &mut self.slice_left_ns[core as usize];
        if *slice_left_ns == 0 {
            *slice_left_ns = self.slice_ns;
        }
        let stretch_ns = left_ns.min(*slice_left_ns);
        *slice_left_ns -= stretch_ns;
        self.running[core as usize] = Some(Running {
            session,
            left_ns,
            since: starts,
            stretch_ns,
            interrupted_ns: 0,
        });
        starts + stretch_ns
    }

    /// The core's event has come.
    pub(crate) fn end_stretch(&mut self, now: Nanos, core: u32) -> Ended {
        let running = self.running[core as usize].take();
        let mut running = running.expect("a core with an event runs a session");
        if running.interrupted_ns > 0 {
            let until = now + std::mem::take(&mut running.interrupted_ns);
            self.running[core as usize] = Some(running);
            return Ended::Goes(until);
        }
        self.busy_ns += now - running.since;
        running.left_ns -= running.stretch_ns;
        if running.left_ns == 0 {
            return Ended::Done(running.session);
        }
        if !self.queue.is_empty() {
            return Ended::Preempted {
                session: running.session,
                left_ns: running.left_ns,
            };
        }
        Ended::Goes(self.run(now, core, running.session, running.left_ns))
    }

    /// Forgets how busy the cores were until `now`.
    pub(crate) fn begin(&mut self, now: Nanos) {
        self.busy_ns = 0;
        for running in self.running.iter_mut().flatten() {
            let ran_ns = now.saturating_sub(running.since);
            let ran_ns = ran_ns.min(running.stretch_ns);
            running.stretch_ns -= ran_ns;
            running.left_ns -= ran_ns;
            running.since = running.since.max(now);
        }
    }

    /// Share of the cores that was busy since it was forgotten, `elapsed_ns` ago.
    pub(crate) fn busy_share(&self, now: Nanos, elapsed_ns: Nanos) -> f64 {
        let running = self.running.iter().flatten();
        let busy_ns = self.busy_ns
            + running
                .map(|running| now.saturating_sub(running.since))
                .sum::<u64>();
        busy_ns as f64 / (elapsed_ns.max(1) as f64 * self.running.len() as f64)
    }
}
