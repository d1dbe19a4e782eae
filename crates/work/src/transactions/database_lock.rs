//! The lock of an engine that lets one session at a time write the whole database (SQLite): the point in its
//! transaction where a session takes the lock, which no call shows.
//!
//! A session that finds the lock taken sleeps and tries again (`sqlite3_busy_timeout`), so it holds the lock
//! from the end of its last sleep. The others took it at their first statement that writes, or at their
//! begin, at no known instant. Estimate: as long before the first page of the log or journal as sessions that
//! slept, less their work before the first attempt.

use tierwise_recording::{CallKind, Role};

use crate::constants::BUSY_MOST_LATE_NS;
use crate::index::view::View;
use crate::log::checkpoints::Checkpoints;
use crate::timeline::segments::{Segment, SegmentKind};
use crate::timeline::wait::WaitCause;
use crate::transactions::turn_meaning::Meaning;
use crate::transactions::turns::RawTurn;
use crate::{Grouping, HotLock};

/// Largest number of observations kept.
const MOST_KEPT: usize = 256;

/// A writing turn's activity, in time on a core since it began.
#[derive(Clone, Copy, Debug)]
struct Writing {
    /// Until its first sleep, and until its last one.
    slept: Option<(u64, u64)>,
    /// Until it first wrote to the log or journal.
    wrote_ns: u64,
}

/// The lock, if any session writes; and in `meanings` the turns that take it.
pub(crate) fn find(
    view: &View<'_>,
    checkpoints: Option<&Checkpoints>,
    sessions: &[Vec<RawTurn>],
    meanings: &mut [Vec<Meaning>],
) -> Vec<HotLock> {
    let mut taken: Vec<(&mut Meaning, Writing)> = Vec::new();
    let turns = sessions.iter().flatten();
    for (turn, meaning) in turns.zip(meanings.iter_mut().flatten()) {
        let ends = meaning.ends || !turn.commits.is_empty();
        taken.extend(
            writing(view, checkpoints, turn)
                .filter(|_| ends)
                .map(|found| (meaning, found)),
        );
    }
    if taken.is_empty() {
        return Vec::new();
    }
    let ahead_ns = ahead_ns(taken.iter().map(|(_, writing)| writing));
    for (meaning, writing) in taken {
        let at_ns = writing
            .slept
            .map_or(writing.wrote_ns.saturating_sub(ahead_ns), |slept| slept.0);
        meaning.locks.push((0, at_ns));
    }
    vec![HotLock {
        name: "the right to write".to_owned(),
        keys: 1,
        observed_share: slept_share(sessions),
        over_commit: true,
        retry_ns: view.engine.retry_ns.to_vec(),
        late_ns: late_ns(view.engine.retry_ns, sessions),
    }]
}

/// From the first sleep's end to the last one's begin: failed attempts in between are no part of the turn,
/// because a replay makes its own.
pub(crate) fn tries(grouping: Grouping, turn: &RawTurn) -> Option<(u64, u64)> {
    if grouping != Grouping::Exclusive {
        return None;
    }
    let mut sleeps = turn
        .segments
        .iter()
        .filter(|segment| waits_for_time(segment.kind));
    let first = sleeps.next()?;
    Some((first.end_ns, sleeps.next_back()?.start_ns))
}

fn writing(view: &View<'_>, checkpoints: Option<&Checkpoints>, turn: &RawTurn) -> Option<Writing> {
    let ran_ns = |segment: &Segment| {
        let kept =
            |found: &Checkpoints| found.kept_ns(turn.thread, segment.start_ns, segment.end_ns);
        checkpoints.map_or(segment.time_ns(), kept)
    };
    let (mut slept, mut wrote_ns) = (None, None);
    let mut cpu_ns = 0;
    for segment in &turn.segments {
        match segment.kind {
            SegmentKind::Cpu { .. } => cpu_ns += ran_ns(segment),
            SegmentKind::Wait {
                cause: WaitCause::Timer,
                ..
            } => {
                slept = Some((slept.map_or(cpu_ns, |slept: (u64, u64)| slept.0), cpu_ns));
                wrote_ns = None;
            }
            SegmentKind::Call { call } => {
                let writes = view.call(call).is_some_and(|call| {
                    call.kind == CallKind::Write
                        && matches!(view.role(call.file), Some(Role::Log | Role::Doublewrite))
                });
                wrote_ns = wrote_ns.or(writes.then_some(cpu_ns));
            }
            SegmentKind::Ready | SegmentKind::Wait { .. } => {}
        }
    }
    wrote_ns.map(|wrote_ns| Writing { slept, wrote_ns })
}

/// Assumed time from taking the lock to the first write, for a session that did not sleep.
fn ahead_ns<'a>(all: impl Iterator<Item = &'a Writing>) -> u64 {
    let (mut sum_ns, mut count) = (0, 0);
    for writing in all {
        if let Some((first_ns, last_ns)) = writing.slept {
            sum_ns += (writing.wrote_ns - last_ns) as i64 - first_ns as i64;
            count += 1;
        }
    }
    (sum_ns / i64::max(count, 1)).max(0) as u64
}

/// How much later than requested the next attempt came: the kernel's timers have slack, an idle core has to
/// wake, and the thread runs until its next call.
fn late_ns(retry_ns: &[u64], sessions: &[Vec<RawTurn>]) -> Vec<u64> {
    let mut late: Vec<u64> = sessions
        .iter()
        .flatten()
        .flat_map(|turn| {
            (0..turn.segments.len()).filter_map(|at| late_by(retry_ns, &turn.segments[at..]))
        })
        .filter(|&late| late < BUSY_MOST_LATE_NS.get())
        .collect();
    late.sort_unstable();
    let kept = late.len().min(MOST_KEPT);
    (0..kept).map(|at| late[at * late.len() / kept]).collect()
}

/// The lateness, if the first of some segments is a sleep.
fn late_by(retry_ns: &[u64], segments: &[Segment]) -> Option<u64> {
    let (sleep, then) = segments.split_first()?;
    let slept_ns = sleep.time_ns();
    let asked = retry_ns.iter().rev().find(|&&asked| asked <= slept_ns)?;
    let is_call = |segment: &&Segment| matches!(segment.kind, SegmentKind::Call { .. });
    let next = then.iter().find(is_call)?;
    waits_for_time(sleep.kind).then(|| next.start_ns - sleep.start_ns - asked)
}

fn waits_for_time(kind: SegmentKind) -> bool {
    matches!(
        kind,
        SegmentKind::Wait {
            cause: WaitCause::Timer,
            ..
        }
    )
}

/// Share of the sessions' time spent in these sleeps.
fn slept_share(sessions: &[Vec<RawTurn>]) -> f64 {
    let (mut slept_ns, mut all_ns) = (0, 0);
    for segment in sessions.iter().flatten().flat_map(|turn| &turn.segments) {
        all_ns += segment.time_ns();
        if waits_for_time(segment.kind) {
            slept_ns += segment.time_ns();
        }
    }
    slept_ns as f64 / all_ns.max(1) as f64
}
