//! Cores: servers of one queue, in order of arrival, with time slices.
//!
//! Models: a wait for any of `c` equal cores; a task that has used its slice gives way to those that wait; a run costs
//! more by how long its core was idle. Leaves out: which core (caches, affinity), the time an idle core takes to start,
//! preemption by a thread that wakes, nice values, clock frequencies. So a short run behind long ones waits up to a
//! slice, where a kernel would let it pass. On 26 recorded cases these, replayed as recorded, made predictions worse
//! (docs/evidence/replay.md).
//!
//! Source of the slice: Linux's EEVDF, `base_slice_ns` 0.75 ms × (1 + log2(cores)), at most 3 ms for 8 cores or more
//! (kernel/sched/fair.c).

use std::collections::VecDeque;

use tierwise_device::Nanos;
use tierwise_work::{TimeCategory, cold_factor};

use crate::kernel::clock::{CoreId, Event, TaskId};
use crate::kernel::machine::Machine;
use crate::kernel::task::{Task, Wait};

const SLICE_NS: Nanos = 750_000;
const MAX_DOUBLINGS: u32 = 3;

/// A thread of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thread {
    Server,
    Client,
}

/// The task running on a core.
#[derive(Clone, Copy, Debug)]
struct Running {
    task: TaskId,
    left_ns: Nanos,
    since: Nanos,
    /// Length of the current burst.
    burst_ns: Nanos,
}

/// How a burst ended.
enum BurstEnd {
    /// The task has finished its work.
    Done(TaskId),
    /// The slice is over and other tasks wait.
    Preempted { task: TaskId, left_ns: Nanos },
    /// The task continues until the core's next event: no task waits.
    Continues(Nanos),
}

/// One core.
#[derive(Clone, Debug, Default)]
struct Core {
    running: Option<Running>,
    /// Rest of the running task's slice.
    slice_left_ns: Nanos,
}

/// The cores.
#[derive(Debug)]
pub(crate) struct Cores {
    cores: Vec<Core>,
    /// Idle cores, with the time since which each is; the latest last.
    idle: Vec<(Nanos, CoreId)>,
    /// Tasks that wait for a core.
    waiting: VecDeque<TaskId>,
    slice_ns: Nanos,
    busy_ns: u64,
    /// Speed over that of the recorded cores.
    speed: f64,
    /// Mean factor of cold cores in the recording; none if cores stay warm.
    recorded_cold_factor: Option<f64>,
}

impl Cores {
    pub(crate) fn new(count: u32, speed: f64, recorded_cold_factor: Option<f64>) -> Self {
        Self {
            cores: vec![Core::default(); count as usize],
            idle: (0..count).map(|core| (0, CoreId(core))).collect(),
            waiting: VecDeque::new(),
            slice_ns: SLICE_NS * Nanos::from(1 + count.ilog2().min(MAX_DOUBLINGS)),
            busy_ns: 0,
            speed,
            recorded_cold_factor,
        }
    }

    /// The time slice.
    pub(crate) fn slice_ns(&self) -> Nanos {
        self.slice_ns
    }

    /// Time that a run of `recorded_ns` takes here. `starts`: on the core that became idle last.
    fn run_ns(&self, now: Nanos, recorded_ns: Nanos, starts: bool) -> Nanos {
        let warm_ns = recorded_ns as f64 / self.speed / self.recorded_cold_factor.unwrap_or(1.0);
        let idle_ns = self.idle.last().map_or(0, |&(since, _)| now - since);
        let cold = match self.recorded_cold_factor {
            Some(_) if starts => cold_factor(idle_ns),
            _ => 1.0,
        };
        ((warm_ns * cold) as Nanos).max(1)
    }

    fn core(&mut self, core: CoreId) -> &mut Core {
        &mut self.cores[core.0 as usize]
    }

    /// Whether the running task must yield: its slice is over and others wait.
    fn must_yield(&self, core: CoreId) -> bool {
        self.cores[core.0 as usize].slice_left_ns == 0 && !self.waiting.is_empty()
    }

    /// The task that has waited longest gets the core; none if the core is idle now.
    fn next_for(&mut self, now: Nanos, core: CoreId) -> Option<TaskId> {
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.idle.push((now, core));
        }
        debug_assert!(self.idle.len() <= self.cores.len());
        next
    }

    /// Runs a task on its core; the time of the core's event.
    fn run(&mut self, now: Nanos, core: CoreId, task: TaskId, left_ns: Nanos) -> Nanos {
        let slice_ns = self.slice_ns;
        let core = self.core(core);
        if core.slice_left_ns == 0 {
            core.slice_left_ns = slice_ns;
        }
        let burst_ns = left_ns.min(core.slice_left_ns);
        core.slice_left_ns -= burst_ns;
        debug_assert!(core.running.is_none(), "a core runs one task");
        core.running = Some(Running {
            task,
            left_ns,
            since: now,
            burst_ns,
        });
        now + burst_ns
    }

    /// Handles a core's event; none if nothing runs there.
    fn end_burst(&mut self, now: Nanos, core: CoreId) -> Option<BurstEnd> {
        let running = self.core(core).running.take()?;
        self.busy_ns += now - running.since;
        let (task, left_ns) = (running.task, running.left_ns - running.burst_ns);
        Some(if left_ns == 0 {
            BurstEnd::Done(task)
        } else if self.waiting.is_empty() {
            BurstEnd::Continues(self.run(now, core, task, left_ns))
        } else {
            BurstEnd::Preempted { task, left_ns }
        })
    }

    /// Discards busy time until `now`.
    pub(crate) fn reset_busy_time(&mut self, now: Nanos) {
        self.busy_ns = 0;
        let running = self
            .cores
            .iter_mut()
            .filter_map(|core| core.running.as_mut());
        for running in running {
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

impl Task<'_> {
    /// Runs one of the session's threads for `recorded_ns` of the recorded processor. It stays on its core afterwards.
    pub(crate) fn run(&self, thread: Thread, recorded_ns: Nanos) -> Wait {
        self.machine().request_core(self.id, thread, recorded_ns);
        self.suspend()
    }

    /// Other programs want a slice of a core at regular intervals, and catch up on missed ones.
    pub(crate) async fn load_core(self, first_at: Nanos, period_ns: Nanos) {
        let mut due = first_at;
        loop {
            self.sleep_until(due, TimeCategory::Sleep).await;
            self.use_slice().await;
            due += period_ns;
        }
    }

    /// Uses a slice of a core for another program, whatever the processor's speed; leaves the core.
    async fn use_slice(&self) {
        let slice_ns = self.machine().cores.slice_ns;
        self.change(|task| task.pending_ns = slice_ns);
        self.machine().start_or_enqueue(self.id);
        self.suspend().await;
        self.machine().leave_core(self.id);
    }
}

impl Machine<'_> {
    /// A thread needs a core. A thread that is on one keeps it, unless its slice is over and others wait.
    fn request_core(&mut self, id: TaskId, thread: Thread, recorded_ns: Nanos) {
        let task = self.task(id);
        let core = task.core.filter(|_| task.thread == thread);
        if core.is_none() {
            // If the session's other thread is on a core, it is the waker and leaves that core.
            self.leave_core(id);
        }
        let now = self.clock.now();
        let run_ns = self.cores.run_ns(now, recorded_ns, core.is_none());
        let task = self.task(id);
        (task.pending_ns, task.thread) = (run_ns, thread);
        match core {
            None => self.start_or_enqueue(id),
            Some(core) if !self.cores.must_yield(core) => self.dispatch(id, core),
            Some(_) => {
                self.enqueue(id);
                self.leave_core(id);
            }
        }
    }

    /// Runs a task's pending time on the core that became idle last, or lets it wait for one.
    fn start_or_enqueue(&mut self, id: TaskId) {
        match self.cores.idle.pop() {
            Some((_, core)) => self.dispatch(id, core),
            None => self.enqueue(id),
        }
    }

    fn enqueue(&mut self, id: TaskId) {
        self.cores.waiting.push_back(id);
        let queued = match self.task(id).thread {
            Thread::Client => TimeCategory::Client,
            Thread::Server => TimeCategory::Runnable,
        };
        self.set_activity(id, queued);
    }

    /// Runs a task on a core that it owns.
    fn dispatch(&mut self, id: TaskId, core: CoreId) {
        if self.task(id).core != Some(core) {
            self.cores.core(core).slice_left_ns = self.cores.slice_ns;
        }
        let task = self.task(id);
        task.core = Some(core);
        let pending_ns = task.pending_ns;
        let runs = match task.thread {
            Thread::Client => TimeCategory::Client,
            Thread::Server => TimeCategory::Cpu,
        };
        self.set_activity(id, runs);
        let ends = self.cores.run(self.clock.now(), core, id, pending_ns);
        self.clock.add(ends, Event::Core(core));
    }

    /// Takes a task off its core, if it has one; the longest waiting task gets it.
    pub(crate) fn leave_core(&mut self, id: TaskId) {
        if let Some(core) = self.task(id).core.take() {
            self.pass_core(core);
        }
    }

    fn pass_core(&mut self, core: CoreId) {
        if let Some(next) = self.cores.next_for(self.clock.now(), core) {
            self.dispatch(next, core);
        }
    }

    /// A burst or a slice on a core ends.
    pub(crate) fn end_burst(&mut self, core: CoreId) {
        match self.cores.end_burst(self.clock.now(), core) {
            None => {}
            Some(BurstEnd::Continues(until)) => self.clock.add(until, Event::Core(core)),
            Some(BurstEnd::Preempted { task, left_ns }) => {
                self.task(task).pending_ns = left_ns;
                self.task(task).core = None;
                self.enqueue(task);
                self.pass_core(core);
            }
            Some(BurstEnd::Done(task)) => self.clock.wake(task),
        }
    }
}
