//! Cores: servers of one queue, in order of arrival, with time slices.
//!
//! Models: a wait for any of `c` equal cores; a task that has used its slice gives way to those that wait; what runs cost
//! more on a core that was idle ([`ColdCoreCost`]); where a thread runs that the session's other thread wakes. It runs on
//! another core, and starts there late, if that core is awake or the cores are loaded; else on its waker's core, when
//! that one waits. A virtual processor that halts for longer than its host polls counts as taken away, and the kernel
//! does not wake it for a thread (`available_idle_cpu`, `vcpu_is_preempted`). Assumption: a virtual machine; on others
//! each idle core is awake. Source: docs/evidence/work-calibration.md#hand-overs.
//!
//! Leaves out: which other core (caches, affinity), the time until a thread runs that an interrupt or another session
//! wakes, preemption by a thread that wakes, nice values, clock frequencies. So a short run behind long ones waits up to
//! a slice, where a kernel would let it pass.
//!
//! Source of the slice: Linux's EEVDF, `base_slice_ns` 0.75 ms × (1 + log2(cores)), at most 3 ms for 8 cores or more
//! (kernel/sched/fair.c).

use std::collections::VecDeque;

use tierwise_device::Nanos;
use tierwise_work::constants::{AWAKE_NS, HANDED_OVER_NS, SPREAD_BUSY_CORES};
use tierwise_work::{ColdCoreCost, TimeCategory};

use crate::kernel::clock::{CoreId, SimulationEvent, TaskId};
use crate::kernel::machine::Machine;
use crate::kernel::task::{TaskHandle, WakeUpWait};

const SLICE_NS: Nanos = 750_000;
const MAX_DOUBLINGS: u32 = 3;
/// Time constant of the kernel's average of a core's load: a half-life of 32 ms (kernel/sched/pelt.c).
const AVERAGED_NS: f64 = 32e6 / std::f64::consts::LN_2;

/// A thread of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoreClaimant {
    Server,
    Client,
}

/// The task running on a core.
#[derive(Clone, Copy, Debug)]
struct RunningTask {
    task: TaskId,
    left_ns: Nanos,
    since: Nanos,
    /// Length of the current burst.
    burst_ns: Nanos,
    /// The core wakes; the task does not run yet.
    wakes: bool,
}

/// How a burst ended.
enum CpuBurstEnd {
    /// The task has finished its work.
    Done(TaskId),
    /// The slice is over and other tasks wait.
    Preempted { task: TaskId, left_ns: Nanos },
    /// The task continues until the core's next event: no task waits.
    Continues(Nanos),
    /// The core is awake, and the task runs until its next event.
    Starts { task: TaskId, until: Nanos },
}

/// Where a task can start, and the time until it runs there.
#[derive(Clone, Copy, Debug)]
struct CoreStart {
    core: CoreId,
    wake_ns: Nanos,
}

/// One core.
#[derive(Clone, Debug, Default)]
struct Core {
    running: Option<RunningTask>,
    /// Rest of the running task's slice.
    slice_left_ns: Nanos,
    coldness: ColdCoreCost,
}

impl Core {
    /// Begins a burst; the time of its end.
    fn hold(&mut self, running: RunningTask) -> Nanos {
        debug_assert!(self.running.is_none(), "a core runs one task");
        self.running = Some(running);
        running.since + running.burst_ns
    }
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
    /// Busy cores, averaged as the kernel does.
    mean_busy: f64,
    averaged_at: Nanos,
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
            mean_busy: 0.0,
            averaged_at: 0,
        }
    }

    /// The time slice.
    pub(crate) fn slice_ns(&self) -> Nanos {
        self.slice_ns
    }

    /// Time that a run of `recorded_ns` takes on a core that was idle, or that others used until now.
    fn run_ns(&mut self, recorded_ns: Nanos, idle: Option<CoreId>) -> Nanos {
        let warm_ns = recorded_ns as f64 / self.recorded_cold_factor.unwrap_or(1.0);
        let cold_ns = match idle {
            Some(core) if self.recorded_cold_factor.is_some() => {
                self.core(core).coldness.pay(warm_ns)
            }
            _ => 0.0,
        };
        (((warm_ns + cold_ns) / self.speed) as Nanos).max(1)
    }

    /// Takes an idle core for a thread; none if all are busy. `last`: the core of its last run. `waker`: the core that
    /// its waker, the session's other thread, has just left.
    fn take_idle(
        &mut self,
        now: Nanos,
        last: Option<CoreId>,
        waker: Option<CoreId>,
    ) -> Option<CoreStart> {
        self.average(now);
        let loaded = self.mean_busy > SPREAD_BUSY_CORES.get();
        let other = |&(since, core): &(Nanos, CoreId)| {
            Some(core) != waker && (loaded || now - since < AWAKE_NS.get())
        };
        let idle = &self.idle;
        let on = |wanted: Option<CoreId>| move |at: &(Nanos, CoreId)| Some(at.1) == wanted;
        let taken = idle
            .iter()
            .position(|at| on(last)(at) && other(at))
            .or_else(|| waker.and_then(|_| idle.iter().rposition(other)))
            .or_else(|| idle.iter().position(on(waker)))
            .or_else(|| idle.len().checked_sub(1))?;
        let (since, core) = self.idle.remove(taken);
        self.core(core).coldness.idle(now - since);
        let handed_over = waker.is_some_and(|waker| waker != core);
        let wakes = handed_over && self.recorded_cold_factor.is_some();
        Some(CoreStart {
            core,
            wake_ns: if wakes { HANDED_OVER_NS.get() } else { 0 },
        })
    }

    fn average(&mut self, now: Nanos) {
        let weight = (-((now - self.averaged_at) as f64) / AVERAGED_NS).exp();
        let busy = (self.cores.len() - self.idle.len()) as f64;
        self.mean_busy = self.mean_busy * weight + busy * (1.0 - weight);
        self.averaged_at = now;
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
            self.average(now);
            self.idle.push((now, core));
        }
        debug_assert!(self.idle.len() <= self.cores.len());
        next
    }

    /// Runs a task on its core; the time of the core's event.
    fn run(&mut self, now: Nanos, core: CoreId, task: TaskId, left_ns: Nanos) -> Nanos {
        let slice_ns = self.slice_ns;
        let held = self.core(core);
        if held.slice_left_ns == 0 {
            held.slice_left_ns = slice_ns;
        }
        let burst_ns = left_ns.min(held.slice_left_ns);
        held.slice_left_ns -= burst_ns;
        let running = RunningTask {
            task,
            left_ns,
            since: now,
            burst_ns,
            wakes: false,
        };
        held.hold(running)
    }

    /// Wakes a core for a task; the time of the core's event.
    fn wake(&mut self, now: Nanos, start: CoreStart, task: TaskId, left_ns: Nanos) -> Nanos {
        let running = RunningTask {
            task,
            left_ns: left_ns + start.wake_ns,
            since: now,
            burst_ns: start.wake_ns,
            wakes: true,
        };
        self.core(start.core).hold(running)
    }

    /// Handles a core's event; none if nothing runs there.
    fn end_burst(&mut self, now: Nanos, core: CoreId) -> Option<CpuBurstEnd> {
        let running = self.core(core).running.take()?;
        let (task, left_ns) = (running.task, running.left_ns - running.burst_ns);
        if running.wakes {
            let until = self.run(now, core, task, left_ns);
            return Some(CpuBurstEnd::Starts { task, until });
        }
        self.busy_ns += now - running.since;
        Some(if left_ns == 0 {
            CpuBurstEnd::Done(task)
        } else if self.waiting.is_empty() {
            CpuBurstEnd::Continues(self.run(now, core, task, left_ns))
        } else {
            CpuBurstEnd::Preempted { task, left_ns }
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
        let running = running.filter(|running| !running.wakes);
        let busy_ns = self.busy_ns + running.map(|running| now - running.since).sum::<u64>();
        busy_ns as f64 / (elapsed_ns.max(1) as f64 * self.cores.len() as f64)
    }
}

/// What a thread does that waits for a core.
fn queued_activity(thread: CoreClaimant) -> TimeCategory {
    match thread {
        CoreClaimant::Client => TimeCategory::Client,
        CoreClaimant::Server => TimeCategory::Runnable,
    }
}

/// What a thread does on a core.
fn running_activity(thread: CoreClaimant) -> TimeCategory {
    match thread {
        CoreClaimant::Client => TimeCategory::Client,
        CoreClaimant::Server => TimeCategory::Cpu,
    }
}

impl TaskHandle<'_> {
    /// Runs one of the session's threads for `recorded_ns` of the recorded processor. It stays on its core afterwards.
    pub(crate) fn run(&self, thread: CoreClaimant, recorded_ns: Nanos) -> WakeUpWait {
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
        self.machine().load_core(self.id);
        self.suspend().await;
        self.machine().leave_core(self.id);
    }
}

impl Machine<'_> {
    /// A thread needs a core. A thread that is on one keeps it, unless its slice is over and others wait.
    fn request_core(&mut self, id: TaskId, thread: CoreClaimant, recorded_ns: Nanos) {
        let task = self.task(id);
        let kept = task.core.filter(|_| task.thread == thread);
        if let Some(core) = kept {
            self.set_run(id, thread, recorded_ns, kept);
            if self.cores.must_yield(core) {
                self.enqueue(id);
                self.leave_core(id);
            } else {
                self.dispatch(id, core);
            }
            return;
        }
        // If the session's other thread is on a core, it is the waker and leaves that core.
        let (waker, last) = (task.core, task.last_cores[thread as usize]);
        self.leave_core(id);
        let start = self.cores.take_idle(self.clock.now(), last, waker);
        self.set_run(id, thread, recorded_ns, start.map(|start| start.core));
        self.start_or_enqueue(id, start);
    }

    /// What a task runs next.
    fn set_run(
        &mut self,
        id: TaskId,
        thread: CoreClaimant,
        recorded_ns: Nanos,
        core: Option<CoreId>,
    ) {
        let run_ns = self.cores.run_ns(recorded_ns, core);
        let task = self.task(id);
        (task.pending_ns, task.thread) = (run_ns, thread);
    }

    /// Runs a task's pending time on a core that was idle, or lets it wait for one.
    fn start_or_enqueue(&mut self, id: TaskId, start: Option<CoreStart>) {
        match start {
            Some(start) if start.wake_ns > 0 => {
                self.give_core(id, start.core);
                let thread = self.task(id).thread;
                self.set_activity(id, queued_activity(thread));
                let pending_ns = self.task(id).pending_ns;
                let awake_at = self.cores.wake(self.clock.now(), start, id, pending_ns);
                self.clock.add(awake_at, SimulationEvent::Core(start.core));
            }
            Some(start) => self.dispatch(id, start.core),
            None => self.enqueue(id),
        }
    }

    /// Another program runs on the core that became idle last, or waits for one.
    fn load_core(&mut self, id: TaskId) {
        let start = self.cores.take_idle(self.clock.now(), None, None);
        self.start_or_enqueue(id, start);
    }

    fn enqueue(&mut self, id: TaskId) {
        self.cores.waiting.push_back(id);
        let thread = self.task(id).thread;
        self.set_activity(id, queued_activity(thread));
    }

    /// A core is a task's own from now on.
    fn give_core(&mut self, id: TaskId, core: CoreId) {
        if self.task(id).core != Some(core) {
            self.cores.core(core).slice_left_ns = self.cores.slice_ns;
        }
        let task = self.task(id);
        task.core = Some(core);
        task.last_cores[task.thread as usize] = Some(core);
    }

    /// Runs a task on a core that it owns.
    fn dispatch(&mut self, id: TaskId, core: CoreId) {
        self.give_core(id, core);
        let (thread, pending_ns) = (self.task(id).thread, self.task(id).pending_ns);
        self.set_activity(id, running_activity(thread));
        let ends = self.cores.run(self.clock.now(), core, id, pending_ns);
        self.clock.add(ends, SimulationEvent::Core(core));
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
            Some(CpuBurstEnd::Continues(until)) => {
                self.clock.add(until, SimulationEvent::Core(core))
            }
            Some(CpuBurstEnd::Starts { task, until }) => {
                let thread = self.task(task).thread;
                self.set_activity(task, running_activity(thread));
                self.clock.add(until, SimulationEvent::Core(core));
            }
            Some(CpuBurstEnd::Preempted { task, left_ns }) => {
                self.task(task).pending_ns = left_ns;
                self.task(task).core = None;
                self.enqueue(task);
                self.pass_core(core);
            }
            Some(CpuBurstEnd::Done(task)) => self.clock.wake(task),
        }
    }
}
