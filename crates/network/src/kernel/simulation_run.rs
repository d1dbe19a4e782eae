//! Builds a run from a scenario, and an outcome from a run.

use std::cell::RefCell;
use std::rc::Rc;

use tierwise_device::Nanos;
use tierwise_device::random::SplitMix;
use tierwise_recording::UserError;
use tierwise_work::{TimeCategory, TurnPace};

use crate::api::scenario::{Outcome, ReplayMode, Scenario};
use crate::block::devices::{SharedDevices, scenario_devices};
use crate::block::role_layout::RoleLayout;
use crate::block::storage::Storage;
use crate::kernel::arrivals::OpenLoopArrivals;
use crate::kernel::clock::{TaskId, VirtualClock};
use crate::kernel::machine::{Machine, SimulationRun};
use crate::kernel::metrics::Metrics;
use crate::kernel::progress_watch::ProgressWatch;
use crate::kernel::task::{Coroutine, TaskHandle, TaskState};
use crate::page_cache::SimulatedPageCache;
use crate::program::Program;
use crate::stations::client_threads::ClientThreads;
use crate::stations::cores::Cores;
use crate::stations::locks::HotLocks;
use crate::stations::log::DatabaseLog;
use crate::stations::log_replica::SecondLogQueue;
use crate::stations::session_signals::SessionSignals;

/// Warm-up, as a share of the measured span.
const WARM_UP: f64 = 0.2;
/// Background load of a core below the least share is left out; above the most it is capped.
const MIN_SHARE: f64 = 0.002;
const MAX_SHARE: f64 = 0.97;

/// Runs a scenario.
///
/// # Errors
///
/// An impossible scenario: no cores, an unknown device, a device that is too small; a run without progress.
pub fn run_scenario(program: &Program, scenario: &Scenario) -> Result<Outcome, UserError> {
    let mut run = prepare_run(program, scenario, &mut SharedDevices::default())?;
    run.run()?;
    Ok(outcome_of_run(&run))
}

/// A run at its beginning; its shared devices are among `shared`, or added there.
pub(crate) fn prepare_run<'a>(
    program: &'a Program,
    scenario: &Scenario,
    shared: &mut SharedDevices,
) -> Result<SimulationRun<'a>, UserError> {
    scenario.check(program)?;
    let devices = 0..scenario.devices.len();
    let starts = devices.map(|device| shared.end(scenario.shared.get(&device)));
    let layout = RoleLayout::new(program, scenario, starts.collect())?;
    let devices = scenario_devices(program, scenario, shared)?;
    for (device, key) in &scenario.shared {
        shared.set_end(*key, layout.end(*device));
    }
    let machine = new_machine(program, scenario, Storage::new(devices, layout));
    Ok(start_sessions(
        program,
        scenario,
        Rc::new(RefCell::new(machine)),
    ))
}

fn new_machine<'a>(program: &'a Program, scenario: &Scenario, storage: Storage) -> Machine<'a> {
    let work = &program.work;
    let mut tasks = scenario_sessions(program, scenario.clients);
    let steady = matches!(scenario.mode, ReplayMode::Steady { .. });
    let enough = scenario.enough.filter(|_| steady).unwrap_or(u64::MAX);
    let arrivals = scenario.rate_per_s.map(|rate_per_s| {
        OpenLoopArrivals::new(rate_per_s / program.counted_each(), scenario.seed)
    });
    Machine {
        program,
        clock: VirtualClock::new(),
        cores: Cores::new(scenario.cores, scenario.cpu_speed, work.cold_factor),
        clients: ClientThreads::new(program, &mut tasks),
        pages: SimulatedPageCache::new(program, scenario, storage.layout()),
        storage,
        log: work
            .log
            .as_ref()
            .map(|rules| DatabaseLog::new(rules, program, &scenario.commits)),
        second_log: SecondLogQueue::new(scenario.commits.second_log_every),
        locks: HotLocks::new(&work.locks, tasks.len()),
        signals: SessionSignals::new(program, &tasks),
        arrivals,
        due_by_work: Vec::new(),
        metrics: Metrics::new(enough),
        progress: ProgressWatch::new(program, scenario.cores, scenario.cpu_speed),
        random: SplitMix::new(scenario.seed),
        without_page_writes: scenario.commits.without_page_writes,
        steady,
        unfinished: tasks.iter().filter(|task| task.counts).count() as u32,
        over: false,
        tasks,
    }
}

/// The sessions of a scenario. More clients repeat the set of all looping sessions; fewer clients leave some out.
fn scenario_sessions(program: &Program, clients: Option<u32>) -> Vec<TaskState> {
    let mut left = clients.map_or(program.clients, |clients| clients as usize);
    let mut tasks = Vec::new();
    let mut copy = 0;
    while left > 0 {
        for (index, session) in program.sessions.iter().enumerate() {
            let repeats = program.pace(session) == TurnPace::Loop && !session.replicates_log;
            if session.client && left > 0 {
                left -= 1;
            } else if session.client || (copy > 0 && !repeats) {
                continue;
            }
            tasks.push(TaskState::new(Some(index as u32), copy, session.client));
        }
        copy += 1;
    }
    tasks
}

fn start_sessions<'a>(
    program: &'a Program,
    scenario: &Scenario,
    machine: Rc<RefCell<Machine<'a>>>,
) -> SimulationRun<'a> {
    let mut run = SimulationRun {
        machine: Rc::clone(&machine),
        coroutines: Vec::new(),
    };
    let steady = machine.borrow().steady;
    let sessions = machine.borrow().tasks.len() as u32;
    for index in 0..sessions {
        let task = TaskHandle::new(&machine, program, TaskId(index));
        let machine = &mut *machine.borrow_mut();
        let session = machine.task(TaskId(index)).session.unwrap_or(0);
        let routine = &program.sessions[session as usize];
        let coroutine: Coroutine<'a> = if program.pace(routine) == TurnPace::Loop {
            let anywhere = steady && program.signallers.is_empty();
            let starts = &routine.transaction_starts;
            let first = match anywhere && !starts.is_empty() {
                true => starts[machine.random.below(starts.len())],
                false => 0,
            };
            Box::pin(task.serve(session, first, steady || routine.replicates_log))
        } else {
            Box::pin(task.serve_paced(session, steady))
        };
        machine.clock.wake(TaskId(index));
        run.coroutines.push(coroutine);
    }
    start_background_load(&mut run, program, scenario);
    run.add(program, |task| Box::pin(task.write_back_periodically()));
    run.add(program, |task| Box::pin(task.flush_log_periodically()));
    if scenario.rate_per_s.is_some() {
        run.add(program, |task| Box::pin(task.bring_transactions()));
    }
    if let ReplayMode::Steady { span_ns } = scenario.mode {
        let warm_up_ns = (span_ns as f64 * WARM_UP) as Nanos;
        run.add(program, |task| Box::pin(task.measure(warm_up_ns, span_ns)));
    } else {
        machine.borrow_mut().metrics.start(0);
    }
    run
}

/// Starts the background load: one task for each core, with its share of the processor time of other programs in the
/// recording.
fn start_background_load<'a>(
    run: &mut SimulationRun<'a>,
    program: &'a Program,
    scenario: &Scenario,
) {
    let work = &program.work;
    let recorded = work.foreign_cpu_share.clamp(0.0, 1.0);
    let all = scenario.background_share.unwrap_or(recorded) * f64::from(work.cores);
    let share = all / f64::from(scenario.cores);
    if share <= MIN_SHARE {
        return;
    }
    let slice_ns = run.machine.borrow().cores.slice_ns();
    let period_ns = (slice_ns as f64 / share.min(MAX_SHARE)) as Nanos;
    for _ in 0..scenario.cores {
        let first_at = run.machine.borrow_mut().random.below(period_ns as usize) as Nanos;
        run.add(program, |task| {
            Box::pin(task.load_core(first_at, period_ns))
        });
    }
}

impl TaskHandle<'_> {
    /// Measures a steady run: a warm-up, then the span.
    async fn measure(self, warm_up_ns: Nanos, span_ns: Nanos) {
        self.sleep(warm_up_ns, TimeCategory::Sleep).await;
        self.machine().begin_counting();
        self.sleep(span_ns, TimeCategory::Sleep).await;
        self.machine().over = true;
    }
}

impl<'a> SimulationRun<'a> {
    /// Adds a service.
    fn add(
        &mut self,
        program: &'a Program,
        coroutine: impl FnOnce(TaskHandle<'a>) -> Coroutine<'a>,
    ) {
        let id = TaskId(self.coroutines.len() as u32);
        let task = TaskHandle::new(&self.machine, program, id);
        self.coroutines.push(coroutine(task));
        let machine = &mut *self.machine.borrow_mut();
        machine.tasks.push(TaskState::new(None, 0, false));
        machine.clock.wake(id);
    }
}

/// The outcome of a run that is over.
pub(crate) fn outcome_of_run(run: &SimulationRun<'_>) -> Outcome {
    let machine = &mut *run.machine.borrow_mut();
    let now = machine.clock.now();
    for task in machine
        .tasks
        .iter()
        .filter(|task| task.counts && !task.finished)
    {
        machine
            .metrics
            .add_time(task.activity, task.activity_since, now);
    }
    let metrics = &machine.metrics;
    let elapsed_ns = metrics.elapsed_ns(now);
    if machine.steady {
        // Little's law of a closed network: its sessions' time is their number times the measured time.
        let sessions = machine.tasks.iter().filter(|task| task.counts).count();
        debug_assert_eq!(metrics.spent_ns(), sessions as Nanos * elapsed_ns);
    }
    Outcome {
        elapsed_s: elapsed_ns as f64 / 1e9,
        turns: metrics.turns,
        transactions: machine.program.counted(metrics.transactions),
        latency: metrics.latency(),
        shares: metrics.shares(),
        commits_per_flush: metrics.commits as f64 / metrics.log_flushes.max(1) as f64,
        busy_share: machine.cores.busy_share(now, elapsed_ns),
        io: machine.storage.io(now),
        waiting: machine
            .arrivals
            .as_ref()
            .map_or(0, OpenLoopArrivals::waiting),
        warnings: machine.signals.warning().into_iter().collect(),
    }
}

// Several databases at once, each on its own machine, with devices that they share.

/// Runs the scenarios of several databases on one virtual time; outcomes in their order.
///
/// # Errors
///
/// The index of the database at fault, and an impossible scenario or a run without progress. All databases must
/// repeat their work for the same time, so that each is measured while all others are at work.
pub fn run_scenarios_together(
    databases: &[(&Program, Scenario)],
) -> Result<Vec<Outcome>, (usize, UserError)> {
    let mut shared = SharedDevices::default();
    let mut runs = Vec::with_capacity(databases.len());
    for (index, (program, scenario)) in databases.iter().enumerate() {
        let checked = check_scenario(scenario, &databases[0].1);
        let run = checked.and_then(|()| prepare_run(program, scenario, &mut shared));
        runs.push((run.map_err(|error| (index, error))?, false));
    }
    while let Some((_, index)) = runs
        .iter()
        .enumerate()
        .filter(|(_, (_, over))| !over)
        .map(|(index, (run, _))| (run.next_event_at(), index))
        .min()
    {
        let (run, over) = &mut runs[index];
        *over = run.advance().map_err(|error| (index, error))?;
    }
    Ok(runs.iter().map(|(run, _)| outcome_of_run(run)).collect())
}

fn check_scenario(scenario: &Scenario, first: &Scenario) -> Result<(), UserError> {
    let repeats = matches!(scenario.mode, ReplayMode::Steady { .. });
    if repeats && scenario.mode == first.mode && scenario.enough.is_none() {
        return Ok(());
    }
    Err(UserError::new(
        "work that is done once, or for another time, cannot be measured while others are at work",
        "take recordings of work that repeats, and one time for all",
    ))
}
