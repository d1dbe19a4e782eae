//! From a scenario to a run, and from a run to its outcome.

use std::collections::VecDeque;

use tierwise_device::random::SplitMix;
use tierwise_device::{Device, Nanos, Precondition, Profile};
use tierwise_recording::Role;
use tierwise_work::{Pace, Part, Work};

use crate::cache::{Cache, limit_bytes};
use crate::clients;
use crate::cores::Cores;
use crate::events::{Event, Events};
use crate::jobs::Jobs;
use crate::layout::Layout;
use crate::locks::Locks;
use crate::log::Log;
use crate::memory::Memory;
use crate::observed::Observed;
use crate::others::calibrated;
use crate::processor::SERVER;
use crate::program::Program;
use crate::progress::Progress;
use crate::read_ahead::ReadAhead;
use crate::session::Session;
use crate::simulation::{Signals, Simulation};
use crate::storage::Storage;
use crate::tally::Tally;
use crate::toll::Toll;
use crate::write_ahead::WriteAhead;
use crate::write_back::WriteBack;
use crate::{Mode, Outcome, ReplayError, Scenario};

/// Part of a steady span that passes before it counts.
const WARM_UP: f64 = 0.2;
/// Observed times that stand for a device.
const ENOUGH_TIMES: usize = 30;
/// Shares of a core taken by others that are left out, and that are as much as others are thought to take.
const LEAST_SHARE: f64 = 0.002;
const MOST_SHARE: f64 = 0.97;

/// Runs a scenario.
///
/// # Errors
/// A scenario that cannot be: no cores, a device that is not there, one too small; a run that gets nowhere.
pub fn run(program: &Program, scenario: &Scenario) -> Result<Outcome, ReplayError> {
    scenario.check(program)?;
    let layout = Layout::new(program, scenario)?;
    let mut simulation = build(program, scenario, layout);
    start(&mut simulation, scenario);
    simulation.run()?;
    Ok(outcome(simulation))
}

fn devices<'a>(program: &'a Program, scenario: &Scenario) -> Vec<(Box<dyn Device + 'a>, Toll)> {
    let mut seeds = SplitMix::new(scenario.seed ^ 0x0de5_1ce5);
    let device = |(index, profile): (usize, &'_ Option<Profile>)| -> Box<dyn Device + 'a> {
        let seed = seeds.draw();
        let known = program.devices.get(index).is_some_and(is_known);
        let recorded = program.profiles.get(index).and_then(Option::as_ref);
        let recorded = recorded.filter(|_| !(scenario.as_observed && known));
        match (profile, recorded, program.devices.get(index)) {
            (Some(profile), ..) if scenario.worn => worn(profile, seed),
            (Some(profile), ..) | (None, Some(profile), _) => profile.build(seed),
            (None, None, Some(recorded)) => Box::new(Observed::new(recorded, seed)),
            (None, None, None) => Box::new(Observed::new(&program.nowhere, seed)),
        }
    };
    let devices = scenario.devices.iter().enumerate().map(device);
    let tolls = (0..).map(|index| Toll::new(program, scenario, index));
    devices.zip(tolls).collect()
}

/// A device as long use leaves it.
fn worn(profile: &Profile, seed: u64) -> Box<dyn Device> {
    let mut device = profile.build(seed);
    device.precondition(Precondition::Random { active_share: 1.0 });
    device
}

/// Whether enough times of a device were observed to stand for it.
fn is_known(device: &tierwise_work::RecordedDevice) -> bool {
    device.reads.len() + device.writes.len() >= ENOUGH_TIMES
}

fn build<'a>(program: &'a Program, scenario: &Scenario, layout: Layout) -> Simulation<'a> {
    let work = &program.work;
    let mut sessions = sessions(program, scenario.clients);
    let clients = clients::threads(program, &mut sessions);
    let sets = sessions
        .iter()
        .map(|session| session.set)
        .max()
        .unwrap_or(0)
        + 1;
    let sectors = |role| layout.sectors(role);
    let steady = matches!(scenario.mode, Mode::Steady { .. });
    let memory = scenario
        .memory_bytes
        .unwrap_or(work.memory_bytes)
        .max(1 << 20);
    Simulation {
        program,
        now: 0,
        events: Events::new(),
        cores: Cores::new(scenario.cores),
        cache: Cache::new(memory, most_dirty_bytes(work, memory), sectors),
        memory: Memory::new(program, scenario),
        storage: Storage::new(devices(program, scenario), layout),
        jobs: Jobs::default(),
        unfinished: sessions.iter().filter(|session| session.counts).count() as u32,
        locks: Locks::new(&work.locks, sessions.len()),
        sessions,
        servers: Vec::new(),
        journals: [0; Role::ALL.len()],
        clients,
        log: work.log.as_ref().map(|rules| {
            Log::new(
                rules,
                work.cpu,
                program.leader_ns(),
                program.waits_for_copy(),
            )
        }),
        ahead: work.checkpoints.as_ref().map(WriteAhead::new),
        throttled: VecDeque::new(),
        write_back: WriteBack::default(),
        read_ahead: ReadAhead::default(),
        signals: Signals {
            given: vec![0; sets as usize * program.signallers.len()],
            waiting: Vec::new(),
            missed: 0,
        },
        tally: Tally::new(),
        random: SplitMix::new(scenario.seed),
        cpu_speed: scenario.cpu_speed,
        traced: scenario.traced,
        others_period_ns: 0,
        steady,
        transactions: 0,
        enough: scenario.enough.filter(|_| steady).unwrap_or(u64::MAX),
        due_by_work: Vec::new(),
        counted_from: 0,
        over: false,
        progress: Progress::new(program, scenario.cores, scenario.cpu_speed),
        answered: Vec::with_capacity(1024),
    }
}

/// What may be dirty at once, as far as was seen: a group that was full, with more memory, holds so much more.
fn most_dirty_bytes(work: &Work, memory_bytes: u64) -> u64 {
    if work.most_dirty_bytes <= limit_bytes(work.memory_bytes) {
        return work.most_dirty_bytes;
    }
    let more = memory_bytes.saturating_sub(work.memory_bytes);
    let less = work.memory_bytes.saturating_sub(memory_bytes);
    (work.most_dirty_bytes + more).saturating_sub(less)
}

/// All recorded sessions; with more clients, further sets of those that loop; with fewer, not all clients.
fn sessions(program: &Program, clients: Option<u32>) -> Vec<Session> {
    let wanted = clients.map_or(program.clients, |clients| clients as usize);
    let mut sessions = Vec::new();
    let mut left = wanted;
    for set in 0.. {
        for (index, script) in program.sessions.iter().enumerate() {
            if index == program.others as usize {
                continue;
            }
            if script.client && left > 0 {
                left -= 1;
                sessions.push(Session::new(index as u32, set, true));
            } else if !script.client
                && (set == 0 || (script.pace == Pace::Loop && !script.copies_log))
            {
                sessions.push(Session::new(index as u32, set, false));
            }
        }
        if left == 0 {
            break;
        }
    }
    sessions
}

/// The other programs of the machine: on each core one that takes its part of what they took in the recording.
fn start_others(simulation: &mut Simulation<'_>, scenario: &Scenario) {
    let work = &simulation.program.work;
    let share = scenario
        .others_share
        .unwrap_or_else(|| calibrated(simulation.program))
        * f64::from(work.cores)
        / f64::from(scenario.cores);
    if share <= LEAST_SHARE {
        return;
    }
    let slice_ns = simulation.cores.slice_ns();
    simulation.others_period_ns = (slice_ns as f64 / share.min(MOST_SHARE)) as Nanos;
    for core in 0..scenario.cores {
        let index = simulation.sessions.len() as u32;
        let mut session = Session::new(simulation.program.others, 0, false);
        session.home[SERVER] = core;
        session.cycle_began = simulation
            .random
            .below(simulation.others_period_ns as usize) as Nanos;
        simulation
            .events
            .push(session.cycle_began, Event::Wake(index));
        simulation.sessions.push(session);
    }
}

fn start(simulation: &mut Simulation<'_>, scenario: &Scenario) {
    simulation.give_what_nobody_gives();
    start_others(simulation, scenario);
    for index in 0..simulation.sessions.len() as u32 {
        if simulation.sessions[index as usize].script == simulation.program.others {
            continue;
        }
        let script =
            &simulation.program.sessions[simulation.sessions[index as usize].script as usize];
        if script.pace != Pace::Loop {
            simulation.await_next_turn(index);
            continue;
        }
        let anywhere = simulation.steady && simulation.program.signallers.is_empty();
        if anywhere && !script.beginnings.is_empty() {
            let drawn = simulation.random.below(script.beginnings.len());
            let turn = script.beginnings[drawn];
            simulation.sessions[index as usize].position = script.turns[turn as usize];
        }
        simulation.events.push(0, Event::Wake(index));
    }
    simulation.events.push(0, Event::WriteBack);
    simulation.events.push(0, Event::Flusher);
    if let Mode::Steady { span_ns } = scenario.mode {
        let warm_up_ns = (span_ns as f64 * WARM_UP) as Nanos;
        simulation.events.push(warm_up_ns, Event::Count);
        simulation.events.push(warm_up_ns + span_ns, Event::End);
    } else {
        simulation.tally.begin(0);
    }
}

fn warnings(simulation: &Simulation<'_>) -> Vec<String> {
    let missed = simulation.signals.missed;
    let sentence = format!(
        "{missed} waits for another session were given up: what they waited for did not come"
    );
    if missed > 0 {
        vec![sentence]
    } else {
        Vec::new()
    }
}

fn outcome(mut simulation: Simulation<'_>) -> Outcome {
    for index in 0..simulation.sessions.len() as u32 {
        if !simulation.sessions[index as usize].finished {
            let doing = simulation.sessions[index as usize].doing;
            let other = if doing == Part::Other {
                Part::Sleep
            } else {
                Part::Other
            };
            simulation.does(index, other);
        }
    }
    let elapsed_ns = simulation.now - simulation.counted_from;
    let tally = &simulation.tally;
    Outcome {
        elapsed_s: elapsed_ns as f64 / 1e9,
        turns: tally.turns,
        transactions: simulation.program.counted(tally.transactions),
        latency: tally.latency(),
        shares: tally.shares(),
        commits_per_flush: tally.commits as f64 / tally.log_flushes.max(1) as f64,
        busy_share: simulation.cores.busy_share(simulation.now, elapsed_ns),
        io: simulation.storage.io(simulation.now),
        warnings: warnings(&simulation),
    }
}
