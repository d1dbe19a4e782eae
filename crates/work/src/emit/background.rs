//! Sessions of the engine's own threads: turns cut at idle waits, with their pace; a second copy of the log.

use tierwise_recording::{Role, ThreadClass};

use crate::constants::{BACKGROUND_IDLE_NS, BACKGROUND_LEAST_SHARE};
use crate::emit::emitter::{Emitter, empty_session};
use crate::log::log_replica::{LogReplica, flushes_log};
use crate::storage::syncs;
use crate::timeline::{Segment, WaitCause, segments_of};
use crate::transactions::turns::RawTurn;
use crate::{Pace, Session, Step, Turn};

/// Fewer transactions than these set no pace.
const ENOUGH: usize = 20;

/// The sessions of background threads. `ended` has the end times of transactions, sorted.
pub(crate) fn sessions(emitter: &mut Emitter<'_>, ended: &[u64]) -> Vec<Session> {
    let view = emitter.view;
    let threads = [ThreadClass::LogWriter, ThreadClass::Background].into_iter();
    let mut threads: Vec<u32> = threads.flat_map(|class| view.threads(class)).collect();
    threads.sort_unstable();
    let own = threads
        .into_iter()
        .filter(|&thread| !view.flushes.is_replica(thread));
    own.filter_map(|thread| session(emitter, ended, thread))
        .collect()
}

fn session(emitter: &mut Emitter<'_>, ended: &[u64], thread: u32) -> Option<Session> {
    let view = emitter.view;
    let helper = emitter.dependencies.is_helper(thread);
    let recorded = &view.recording.threads[thread as usize];
    let mut session = empty_session(recorded.name.clone(), recorded.class, None);
    let mut begins = Vec::new();
    for (burst, segments) in segments_of(view, thread) {
        let turns = match helper {
            true => vec![segments],
            false => at_idle_waits(segments),
        };
        let works =
            |segments: &Vec<Segment>| segments.iter().any(|segment| segment.wait().is_none());
        for segments in turns.into_iter().filter(works) {
            let raw = RawTurn {
                thread,
                burst,
                segments,
                ..RawTurn::default()
            };
            begins.push(raw.start_ns());
            emitter.turn(&raw, &mut session);
        }
    }
    if !helper {
        set_pace(emitter, &mut session, ended, &begins);
    }
    let least_ns = view.span_ns() as f64 * BACKGROUND_LEAST_SHARE.get();
    (moves_data(&session) || cpu_ns(&session) > least_ns).then_some(session)
}

/// Stretches of work between idle waits; the idle waits are left out.
fn at_idle_waits(segments: Vec<Segment<'_>>) -> Vec<Vec<Segment<'_>>> {
    use WaitCause::{LogDevice, Read, Sync, Write};
    let idle = |segment: &Segment| {
        let own = matches!(segment.wait(), Some((Read | Write | Sync | LogDevice, _)));
        segment.wait().is_some() && !own && segment.time_ns() >= BACKGROUND_IDLE_NS.get()
    };
    segments.split(idle).map(<[_]>::to_vec).collect()
}

/// Work that moves data follows the transactions that caused it; all other work follows time.
fn set_pace(emitter: &Emitter<'_>, session: &mut Session, ended: &[u64], begins: &[u64]) {
    let begins = begins.iter();
    if moves_data(session) && ended.len() >= ENOUGH {
        session.pace = Pace::Work;
        let before = |begin: &u64| ended.partition_point(|end| end < begin) as u64;
        session.starts = begins.map(before).collect();
    } else {
        session.pace = Pace::Time;
        let since = |begin: &u64| emitter.view.in_bursts_ns(0, *begin);
        session.starts = begins.map(since).collect();
    }
}

fn moves_data(session: &Session) -> bool {
    use Step::{Await, Cpu, Delay, Signal};
    let mut steps = session.steps.iter();
    steps.any(|step| !matches!(step, Cpu { .. } | Delay(_) | Signal { .. } | Await { .. }))
}

fn cpu_ns(session: &Session) -> f64 {
    let time = |step: &Step| match step {
        Step::Cpu { time_ns, .. } => f64::from(*time_ns),
        _ => 0.0,
    };
    session.steps.iter().map(time).sum()
}

/// Both threads of a second copy of the log as one session, with a turn for each flush of the copy.
pub(crate) fn replica_session(emitter: &mut Emitter<'_>, replica: LogReplica) -> Session {
    let view = emitter.view;
    let calls = view.calls(replica.receiver).iter();
    let scripts: Vec<_> = calls
        .filter(|call| flushes_log(view, call))
        .map(|call| syncs::script(view, Role::Log, call))
        .collect();
    let cpu_ns = view.cpu_ns(replica.sender) + view.cpu_ns(replica.receiver);
    let half_ns = cpu_ns / scripts.len().max(1) as u64 / 2;
    let half = Step::Cpu {
        time_ns: u32::try_from(half_ns).unwrap_or(u32::MAX),
        client: false,
    };
    let recorded = &view.recording.threads[replica.receiver as usize];
    let mut session = empty_session(recorded.name.clone(), ThreadClass::LogWriter, None);
    for script in scripts {
        let sync = Step::Sync {
            role: Role::Log,
            script: emitter.syncs.add(script),
        };
        let mut steps = vec![Step::AwaitLog, half, sync, half];
        steps.extend(replica.waited_for.then_some(Step::Acknowledge));
        session.turns.push(Turn {
            first_step: session.steps.len() as u32,
            steps: steps.len() as u32,
            tail_steps: 0,
            ends: false,
            recorded_ns: 0,
        });
        session.steps.extend(steps);
    }
    session
}
