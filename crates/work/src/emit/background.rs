//! Turns of background threads: cut at idle waits, with their pace.

use tierwise_recording::ThreadClass;

use crate::constants::{BACKGROUND_IDLE_NS, BACKGROUND_LEAST_SHARE};
use crate::emit::emitter::Emitter;
use crate::index::work_clock::WorkClock;
use crate::timeline::segments::{Segment, SegmentKind, segments_of};
use crate::timeline::wait::WaitCause;
use crate::transactions::turn_meaning::Meaning;
use crate::transactions::turns::RawTurn;
use crate::{Pace, Session, Step};

/// Fewer transactions than these set no pace.
const ENOUGH: usize = 20;

/// The sessions of background threads. `ended` has the end times of transactions, sorted.
pub(crate) fn sessions(
    emitter: &mut Emitter<'_>,
    clock: &WorkClock,
    ended: &[u64],
) -> Vec<Session> {
    let view = emitter.view;
    let threads = &view.recording.threads;
    (0..threads.len() as u32)
        .filter(|&thread| {
            let class = threads[thread as usize].class;
            matches!(class, ThreadClass::LogWriter | ThreadClass::Background)
                && !emitter.flushes.is_replica(thread)
        })
        .filter_map(|thread| session(emitter, clock, ended, thread))
        .collect()
}

fn session(
    emitter: &mut Emitter<'_>,
    clock: &WorkClock,
    ended: &[u64],
    thread: u32,
) -> Option<Session> {
    let view = emitter.view;
    let helper = emitter.dependencies.is_helper(thread);
    let mut session = Session {
        name: view.recording.threads[thread as usize].name.clone(),
        class: view.recording.threads[thread as usize].class,
        client: None,
        pace: Pace::Loop,
        turns: Vec::new(),
        starts: Vec::new(),
        steps: Vec::new(),
    };
    let mut begins = Vec::new();
    for (burst, segments) in segments_of(view, emitter.flushes, thread) {
        let turns = if helper {
            vec![segments]
        } else {
            at_idle_waits(segments)
        };
        for segments in turns.into_iter().filter(|segments| works(segments)) {
            let raw = RawTurn {
                thread,
                burst,
                segments,
                ..RawTurn::default()
            };
            begins.push(raw.start_ns());
            emitter.turn(&raw, &Meaning::default(), &mut session);
        }
    }
    if !helper {
        set_pace(&mut session, clock, ended, &begins);
    }
    let span_ns = view.span_ns() as f64;
    (moves_data(&session) || cpu_ns(&session) > span_ns * BACKGROUND_LEAST_SHARE.get())
        .then_some(session)
}

fn works(segments: &[Segment]) -> bool {
    segments
        .iter()
        .any(|segment| !matches!(segment.kind, SegmentKind::Wait { .. }))
}

/// Stretches of work between idle waits; the idle waits are left out.
fn at_idle_waits(segments: Vec<Segment>) -> Vec<Vec<Segment>> {
    let mut turns = vec![Vec::new()];
    for segment in segments {
        let idle = match segment.kind {
            SegmentKind::Wait { cause, .. } => {
                let own = matches!(
                    cause,
                    WaitCause::Read | WaitCause::Write | WaitCause::Sync | WaitCause::LogDevice
                );
                !own && segment.time_ns() >= BACKGROUND_IDLE_NS.get()
            }
            _ => false,
        };
        if idle {
            turns.push(Vec::new());
        } else if let Some(turn) = turns.last_mut() {
            turn.push(segment);
        }
    }
    turns
}

/// Work that moves data follows the transactions that caused it; all other work follows time.
fn set_pace(session: &mut Session, clock: &WorkClock, ended: &[u64], begins: &[u64]) {
    if moves_data(session) && ended.len() >= ENOUGH {
        session.pace = Pace::Work;
        let before = |begin: &u64| ended.partition_point(|end| end < begin) as u64;
        session.starts = begins.iter().map(before).collect();
    } else {
        session.pace = Pace::Time;
        session.starts = begins.iter().map(|&begin| clock.of(begin)).collect();
    }
}

fn moves_data(session: &Session) -> bool {
    session.steps.iter().any(|step| {
        !matches!(
            step,
            Step::Cpu { .. } | Step::Delay(_) | Step::Signal { .. } | Step::Await { .. }
        )
    })
}

fn cpu_ns(session: &Session) -> f64 {
    let time = |step: &Step| match step {
        Step::Cpu { time_ns, .. } => f64::from(*time_ns),
        _ => 0.0,
    };
    session.steps.iter().map(time).sum()
}
