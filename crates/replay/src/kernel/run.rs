//! Builds a run from a scenario, and an outcome from a run.

use tierwise_device::Nanos;
use tierwise_device::random::SplitMix;
use tierwise_work::{Pace, TimeCategory, Work};

use crate::api::error::ReplayError;
use crate::api::outcome::Outcome;
use crate::api::scenario::{Mode, Scenario};
use crate::block::device_queue::DeviceModel;
use crate::block::jobs::Jobs;
use crate::block::layout::Layout;
use crate::block::scenario_devices::scenario_devices;
use crate::block::shared_device::SharedDevices;
use crate::block::storage::Storage;
use crate::durability::log::Log;
use crate::durability::second_log::SecondLog;
use crate::engines::wal::CheckpointedLog;
use crate::kernel::arrivals::Arrivals;
use crate::kernel::events::{Event, Events};
use crate::kernel::metrics::Metrics;
use crate::kernel::progress::Progress;
use crate::kernel::session::SessionState;
use crate::kernel::simulation::Simulation;
use crate::locks::hot_locks::HotLocks;
use crate::locks::thread_dependencies::ThreadDependencies;
use crate::page_cache::cache_hits::CacheHits;
use crate::page_cache::dirty_pages::{DirtyPages, limit_bytes};
use crate::page_cache::flusher::Flusher;
use crate::page_cache::read_ahead_windows::ReadAhead;
use crate::program::prepared::Program;
use crate::scheduler::client_threads;
use crate::scheduler::cores::Cores;

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
pub fn run(program: &Program, scenario: &Scenario) -> Result<Outcome, ReplayError> {
    let mut simulation = prepare(program, scenario, &mut SharedDevices::default())?;
    simulation.run()?;
    Ok(outcome(simulation))
}

/// A run at its beginning; its shared devices are among `shared`, or added there.
pub(crate) fn prepare<'a>(
    program: &'a Program,
    scenario: &Scenario,
    shared: &mut SharedDevices,
) -> Result<Simulation<'a>, ReplayError> {
    scenario.check(program)?;
    let start_of = |device| {
        scenario
            .shared
            .get(&device)
            .map_or(0, |key| shared.end(*key))
    };
    let starts = (0..scenario.devices.len()).map(start_of).collect();
    let layout = Layout::new(program, scenario, starts)?;
    let devices = scenario_devices(program, scenario, shared);
    for (device, key) in &scenario.shared {
        shared.set_end(*key, layout.end(*device));
    }
    let mut simulation = build(program, scenario, layout, devices);
    start(&mut simulation, scenario);
    Ok(simulation)
}

fn build<'a>(
    program: &'a Program,
    scenario: &Scenario,
    layout: Layout,
    devices: Vec<(DeviceModel, Nanos)>,
) -> Simulation<'a> {
    let work = &program.work;
    let mut sessions = sessions(program, scenario.clients);
    let clients = client_threads::threads(program, &mut sessions);
    let sets = sessions
        .iter()
        .map(|session| session.set)
        .max()
        .unwrap_or(0)
        + 1;
    let sectors = |role| layout.sectors(role);
    let steady = matches!(scenario.mode, Mode::Steady { .. });
    let enough = scenario.enough.filter(|_| steady).unwrap_or(u64::MAX);
    let memory = scenario
        .memory_bytes
        .unwrap_or(work.memory_bytes)
        .max(1 << 20);
    Simulation {
        program,
        now: 0,
        events: Events::new(),
        cores: Cores::new(scenario.cores),
        dirty_pages: DirtyPages::new(memory, most_dirty_bytes(work, memory), sectors),
        cache_hits: CacheHits::new(program, scenario),
        storage: Storage::new(devices, layout),
        jobs: Jobs::default(),
        unfinished: sessions.iter().filter(|session| session.counts).count() as u32,
        locks: HotLocks::new(&work.locks, sessions.len()),
        sessions,
        clients,
        log: work
            .log
            .as_ref()
            .map(|rules| Log::new(rules, program.waits_for_replica())),
        second_log: SecondLog::new(),
        wal: work.checkpoints.as_ref().map(CheckpointedLog::new),
        flusher: Flusher::default(),
        read_ahead: ReadAhead::default(),
        dependencies: ThreadDependencies::new(program, sets),
        metrics: Metrics::new(enough),
        random: SplitMix::new(scenario.seed),
        cpu_speed: scenario.cpu_speed,
        background_period_ns: 0,
        steady,
        arrivals: scenario
            .rate_per_s
            .map(|rate_per_s| Arrivals::new(rate_per_s / program.counted_each(), scenario.seed)),
        due_by_work: Vec::new(),
        over: false,
        progress: Progress::new(program, scenario.cores, scenario.cpu_speed),
        completed_jobs: Vec::with_capacity(1024),
    }
}

/// Most bytes that may be dirty at once: the observed maximum. If that filled a control group, more memory
/// adds as much.
fn most_dirty_bytes(work: &Work, memory_bytes: u64) -> u64 {
    if work.most_dirty_bytes <= limit_bytes(work.memory_bytes) {
        return work.most_dirty_bytes;
    }
    let more = memory_bytes.saturating_sub(work.memory_bytes);
    let less = work.memory_bytes.saturating_sub(memory_bytes);
    (work.most_dirty_bytes + more).saturating_sub(less)
}

/// The sessions of a scenario. More clients repeat the set of all looping sessions; fewer clients leave some out.
fn sessions(program: &Program, clients: Option<u32>) -> Vec<SessionState> {
    let wanted = clients.map_or(program.clients, |clients| clients as usize);
    let mut sessions = Vec::new();
    let mut left = wanted;
    for set in 0.. {
        for (index, routine) in program.sessions.iter().enumerate() {
            if index == program.background_load as usize {
                continue;
            }
            if routine.client && left > 0 {
                left -= 1;
                sessions.push(SessionState::new(index as u32, set, true));
            } else if !routine.client
                && (set == 0 || (routine.pace == Pace::Loop && !routine.replicates_log))
            {
                sessions.push(SessionState::new(index as u32, set, false));
            }
        }
        if left == 0 {
            break;
        }
    }
    sessions
}

/// Starts the background load: one session on each core, with its share of the processor time of other
/// programs in the recording.
fn start_background_load(simulation: &mut Simulation<'_>, scenario: &Scenario) {
    let work = &simulation.program.work;
    let share = scenario
        .background_share
        .unwrap_or(work.foreign_cpu_share.clamp(0.0, 1.0))
        * f64::from(work.cores)
        / f64::from(scenario.cores);
    if share <= MIN_SHARE {
        return;
    }
    let slice_ns = simulation.cores.slice_ns();
    simulation.background_period_ns = (slice_ns as f64 / share.min(MAX_SHARE)) as Nanos;
    for _ in 0..scenario.cores {
        let index = simulation.sessions.len() as u32;
        let mut session = SessionState::new(simulation.program.background_load, 0, false);
        session.cycle_began = simulation
            .random
            .below(simulation.background_period_ns as usize) as Nanos;
        simulation
            .events
            .push(session.cycle_began, Event::Wake(index));
        simulation.sessions.push(session);
    }
}

fn start(simulation: &mut Simulation<'_>, scenario: &Scenario) {
    let (program, sessions) = (simulation.program, &simulation.sessions);
    simulation
        .dependencies
        .pre_signal_missing(program, sessions);
    start_background_load(simulation, scenario);
    for index in 0..simulation.sessions.len() as u32 {
        if simulation.sessions[index as usize].program_index == simulation.program.background_load {
            continue;
        }
        let routine = &simulation.program.sessions
            [simulation.sessions[index as usize].program_index as usize];
        if routine.pace != Pace::Loop {
            simulation.await_next_turn(index);
            continue;
        }
        let anywhere = simulation.steady && simulation.program.signallers.is_empty();
        if anywhere && !routine.transaction_starts.is_empty() {
            let drawn = simulation.random.below(routine.transaction_starts.len());
            let turn = routine.transaction_starts[drawn];
            simulation.sessions[index as usize].position = routine.turns[turn as usize];
        }
        match &mut simulation.arrivals {
            Some(arrivals) if routine.client => arrivals.add_idle(index),
            _ => simulation.events.push(0, Event::Wake(index)),
        }
    }
    if let Some(arrivals) = &mut simulation.arrivals {
        let first = arrivals.gap_ns();
        simulation.events.push(first, Event::Arrival);
    }
    simulation.events.push(0, Event::WriteBack);
    simulation.events.push(0, Event::Flusher);
    if let Mode::Steady { span_ns } = scenario.mode {
        let warm_up_ns = (span_ns as f64 * WARM_UP) as Nanos;
        simulation.events.push(warm_up_ns, Event::Count);
        simulation.events.push(warm_up_ns + span_ns, Event::End);
    } else {
        simulation.metrics.start(0);
    }
}

fn warnings(simulation: &Simulation<'_>) -> Vec<String> {
    let missed = simulation.dependencies.given_up();
    let sentence = format!(
        "{missed} waits for another session were given up: what they waited for did not come"
    );
    if missed > 0 {
        vec![sentence]
    } else {
        Vec::new()
    }
}

pub(crate) fn outcome(mut simulation: Simulation<'_>) -> Outcome {
    for index in 0..simulation.sessions.len() as u32 {
        if !simulation.sessions[index as usize].finished {
            let activity = simulation.sessions[index as usize].activity;
            let other = if activity == TimeCategory::Other {
                TimeCategory::Sleep
            } else {
                TimeCategory::Other
            };
            simulation.set_activity(index, other);
        }
    }
    let metrics = &simulation.metrics;
    let elapsed_ns = metrics.elapsed_ns(simulation.now);
    if simulation.steady {
        // Little's law of a closed network: its sessions' time is their number times the measured time.
        let sessions = simulation.sessions.iter().filter(|one| one.counts).count();
        debug_assert_eq!(metrics.spent_ns(), sessions as Nanos * elapsed_ns);
    }
    Outcome {
        elapsed_s: elapsed_ns as f64 / 1e9,
        turns: metrics.turns,
        transactions: simulation.program.counted(metrics.transactions),
        latency: metrics.latency(),
        shares: metrics.shares(),
        commits_per_flush: metrics.commits as f64 / metrics.log_flushes.max(1) as f64,
        busy_share: simulation.cores.busy_share(simulation.now, elapsed_ns),
        io: simulation.storage.io(simulation.now),
        waiting: simulation.arrivals.as_ref().map_or(0, Arrivals::waiting),
        warnings: warnings(&simulation),
    }
}
