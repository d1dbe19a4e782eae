//! The lock of an engine that lets one session at a time write the whole database (SQLite): the point in its
//! transaction where a session takes the lock, which no call shows.
//!
//! A session that finds the lock taken sleeps and tries again (`sqlite3_busy_timeout`), so it holds the lock
//! from the end of its last sleep. The others took it at their first statement that writes, or at their
//! begin, at no known instant. Estimate: as long before the first page of the log or journal as sessions that
//! slept, less their work before the first attempt.

use tierwise_recording::{CallKind, Role};

use crate::constants::BUSY_MOST_LATE_NS;
use crate::timeline::{Segment, SegmentKind, WaitCause};
use crate::transactions::turns::RawTurn;
use crate::view::View;
use crate::{Grouping, HotLock};

const MOST_KEPT: usize = 256;

/// A writing turn's activity, in time on a core since it began.
struct Writing {
    /// Until its first sleep, and until its last one.
    slept: Option<(u64, u64)>,
    /// Until it first wrote to the log or journal.
    wrote_ns: u64,
}

/// The lock, if any session writes; marks the turns that take it.
pub(crate) fn find(view: &View<'_>, sessions: &mut [Vec<RawTurn<'_>>]) -> Vec<HotLock> {
    let lock = HotLock {
        name: "the right to write".to_owned(),
        keys: 1,
        observed_share: slept_share(sessions),
        over_commit: true,
        retry_ns: view.engine.retry_ns.to_vec(),
        late_ns: late_ns(view.engine.retry_ns, sessions),
    };
    let turns = sessions.iter_mut().flatten();
    let takers = turns.filter(|turn| turn.ends || !turn.commits.is_empty());
    let taken: Vec<(&mut RawTurn, Writing)> = takers
        .filter_map(|turn| writing(view, turn).map(|writing| (turn, writing)))
        .collect();
    if taken.is_empty() {
        return Vec::new();
    }
    let ahead_ns = ahead_ns(taken.iter().map(|(_, writing)| writing));
    for (turn, writing) in taken {
        let ran_ns = writing.wrote_ns.saturating_sub(ahead_ns);
        let at_ns = writing.slept.map_or(ran_ns, |slept| slept.0);
        turn.locks.push((0, at_ns));
    }
    vec![lock]
}

/// From the first sleep's end to the last one's begin: failed attempts in between are no part of the turn,
/// because a replay makes its own.
pub(crate) fn tries(grouping: Grouping, turn: &RawTurn<'_>) -> Option<(u64, u64)> {
    if grouping != Grouping::Exclusive {
        return None;
    }
    let segments = turn.segments.iter();
    let mut sleeps = segments.filter(|segment| segment.waits_for(WaitCause::Timer));
    let first = sleeps.next()?;
    Some((first.end_ns, sleeps.next_back()?.start_ns))
}

fn writing(view: &View<'_>, turn: &RawTurn<'_>) -> Option<Writing> {
    let (mut slept, mut wrote_ns) = (None, None);
    let mut cpu_ns = 0;
    for segment in &turn.segments {
        match segment.kind {
            SegmentKind::Cpu { .. } => {
                cpu_ns += segment.end_ns - segment.start_ns;
            }
            SegmentKind::Wait {
                cause: WaitCause::Timer,
                ..
            } => {
                slept = Some((slept.map_or(cpu_ns, |slept: (u64, u64)| slept.0), cpu_ns));
                wrote_ns = None;
            }
            SegmentKind::Call { call, .. } => {
                let writes = call.kind == CallKind::Write
                    && matches!(view.role(call.file), Some(Role::Log | Role::Doublewrite));
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
fn late_ns(retry_ns: &[u64], sessions: &[Vec<RawTurn<'_>>]) -> Vec<u64> {
    let turns = sessions.iter().flatten();
    let rests = turns.flat_map(|turn| (0..turn.segments.len()).map(|at| &turn.segments[at..]));
    let mut late: Vec<u64> = rests
        .filter_map(|segments| late_by(retry_ns, segments))
        .filter(|&late| late < BUSY_MOST_LATE_NS.get())
        .collect();
    late.sort_unstable();
    let kept = late.len().min(MOST_KEPT);
    (0..kept).map(|at| late[at * late.len() / kept]).collect()
}

/// The lateness, if the first of some segments is a sleep.
fn late_by(retry_ns: &[u64], segments: &[Segment<'_>]) -> Option<u64> {
    let (sleep, then) = segments.split_first()?;
    if !sleep.waits_for(WaitCause::Timer) {
        return None;
    }
    let mut asked = retry_ns.iter().rev();
    let asked = asked.find(|&&asked| asked <= sleep.time_ns())?;
    let next = then.iter().find(|segment| segment.call().is_some())?;
    Some(next.start_ns - sleep.start_ns - asked)
}

/// Share of the sessions' time spent in these sleeps.
fn slept_share(sessions: &[Vec<RawTurn<'_>>]) -> f64 {
    let (mut slept_ns, mut all_ns) = (0, 0);
    for segment in sessions.iter().flatten().flat_map(|turn| &turn.segments) {
        all_ns += segment.time_ns();
        if segment.waits_for(WaitCause::Timer) {
            slept_ns += segment.time_ns();
        }
    }
    slept_ns as f64 / all_ns.max(1) as f64
}
