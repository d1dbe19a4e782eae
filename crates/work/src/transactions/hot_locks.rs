//! Hot locks: held by transactions until they commit, found by which thread wakes which and when; the number
//! of keys is fitted.

use std::collections::BTreeMap;

use tierwise_recording::{CallKind, Role};

use crate::constants::{LEAST_TIME_SHARE, PAUSE_NS, WOKEN_NS};
use crate::recording_view::RecordingView;
use crate::timeline::{ThreadSegment, ThreadSegmentKind, WaitCause};
use crate::transactions::ThreadDependencies;
use crate::transactions::turns::{RawTurn, TurnShape};
use crate::{CommitGrouping, HotLock};

/// Least number of waits to fit a number of keys.
const LEAST_WAITS: usize = 10;
/// Largest number of locks distinguished.
const MOST_LOCKS: usize = 16;

/// Waits of turns of one shape for other sessions, which ended about when those committed.
#[derive(Clone, Copy, Debug, Default)]
struct LockWaits {
    count: usize,
    /// Of these, the waits that ended after the holder's commit, not before it.
    over_commit: usize,
    waited_ns: u64,
    /// Sum of the turns' time on the core before the waits, as a share of the whole.
    before: f64,
}

impl LockWaits {
    /// Whether most of the holders kept it until their commit had ended.
    fn over_commit(&self) -> bool {
        2 * self.over_commit >= self.count
    }
}

/// Hot locks; marks the turns that take them. Also the share of time in unexplained waits.
pub(crate) fn find_hot_locks(
    dependencies: &ThreadDependencies,
    sessions: &mut [Vec<RawTurn<'_>>],
) -> (Vec<HotLock>, f64) {
    let turns = sessions.iter().flatten();
    let times = turns.map(|turn| turn.end_ns() - turn.start_ns());
    let total_ns = times.sum::<u64>().max(1) as f64;
    let (waits, other_ns) = lock_waits(dependencies, sessions);
    let hot = |(_, waits): &(TurnShape, LockWaits)| {
        waits.count >= LEAST_WAITS && waits.waited_ns as f64 / total_ns >= LEAST_TIME_SHARE.get()
    };
    let mut hot: Vec<(TurnShape, LockWaits)> = waits.into_iter().filter(hot).collect();
    hot.sort_by_key(|(_, waits)| std::cmp::Reverse(waits.waited_ns));
    hot.truncate(MOST_LOCKS);
    let mut locks = Vec::new();
    for (index, (shape, waits)) in hot.into_iter().enumerate() {
        let (takers, held_ns) = mark_lock_turns(sessions, shape, &waits, index as u16);
        // A taker meets another session's key with a probability of held keys over keys.
        let chance = (waits.count as f64 / takers.max(1) as f64).min(1.0);
        let held_ns = held_ns.saturating_sub(waits.waited_ns) as f64;
        let held_keys = held_ns / total_ns * (sessions.len() as f64 - 1.0);
        locks.push(HotLock {
            name: format!("lock {}", index + 1),
            keys: (held_keys / chance).round().clamp(1.0, 1e6) as u32,
            observed_share: waits.waited_ns as f64 / total_ns,
            over_commit: waits.over_commit(),
            retry_ns: Vec::new(),
            late_ns: Vec::new(),
        });
    }
    (locks, other_ns as f64 / total_ns)
}

/// Waits for transactions' locks by the waiting turn's shape, and the time of other waits for sessions.
fn lock_waits(
    dependencies: &ThreadDependencies,
    sessions: &[Vec<RawTurn<'_>>],
) -> (BTreeMap<TurnShape, LockWaits>, u64) {
    let mut of_thread: BTreeMap<u32, Vec<&RawTurn>> = BTreeMap::new();
    for turn in sessions.iter().flatten() {
        of_thread.entry(turn.thread).or_default().push(turn);
    }
    let (mut found, mut other_ns) = (BTreeMap::<TurnShape, LockWaits>::new(), 0);
    for turn in sessions.iter().flatten() {
        let turn_ns = turn.cpu_ns().max(1) as f64;
        let mut before_ns = 0;
        for segment in &turn.segments {
            if let ThreadSegmentKind::Cpu { .. } = segment.kind {
                before_ns += segment.time_ns();
            }
            let Some((WaitCause::Thread, state)) = segment.wait() else {
                continue;
            };
            if dependencies.awaited(state).is_some() {
                continue;
            }
            let committed = turn.commits.iter().any(|c| c.end_ns <= segment.start_ns);
            let holder = of_thread.get(&state.waker);
            match holder.and_then(|turns| released_at_commit_end(turns, segment.end_ns)) {
                Some(over_commit) if !committed => {
                    let waits = found.entry(turn.shape).or_default();
                    waits.count += 1;
                    waits.over_commit += usize::from(over_commit);
                    waits.waited_ns += segment.time_ns();
                    waits.before += before_ns as f64 / turn_ns;
                }
                _ => other_ns += segment.time_ns(),
            }
        }
    }
    (found, other_ns)
}

/// Whether the waker released at the end of its commit (true), at its begin (false), or at neither.
fn released_at_commit_end(turns: &[&RawTurn<'_>], time_ns: u64) -> Option<bool> {
    let after = turns.partition_point(|turn| turn.start_ns() <= time_ns);
    let turn = turns[..after].last()?;
    let reply_ns = turn.reply_ns.unwrap_or(u64::MAX);
    for commit in &turn.commits {
        if commit.end_ns <= time_ns && time_ns <= reply_ns.max(commit.end_ns) {
            return Some(true);
        }
        if commit.start_ns > time_ns && commit.start_ns - time_ns < WOKEN_NS.get() {
            return Some(false);
        }
    }
    None
}

/// Makes every turn of a shape take the lock; returns how many do, and how long they hold it. A session whose
/// transactions never end takes none, because it would keep the lock.
fn mark_lock_turns(
    sessions: &mut [Vec<RawTurn<'_>>],
    shape: TurnShape,
    waits: &LockWaits,
    lock: u16,
) -> (usize, u64) {
    let before = waits.before / waits.count as f64;
    let (mut takers, mut all_held_ns) = (0, 0);
    let mut ending = sessions.iter_mut();
    while let Some(turns) = ending.find(|turns| turns.iter().any(|turn| turn.ends)) {
        for index in 0..turns.len() {
            let turn = &mut turns[index];
            if turn.shape == shape && (turn.complete || !turn.served) {
                let at_ns = (turn.cpu_ns() as f64 * before) as u64;
                turn.locks.push((lock, at_ns));
                takers += 1;
                all_held_ns += lock_held_ns(&turns[index..]);
            }
        }
    }
    (takers, all_held_ns)
}

/// From a turn that takes a lock, the first, until its transaction's commit.
fn lock_held_ns(turns: &[RawTurn<'_>]) -> u64 {
    let taken = &turns[0];
    let mut same = turns.iter().take_while(|turn| turn.burst == taken.burst);
    let end_ns = same.find(|turn| turn.ends).map_or(taken.end_ns(), |turn| {
        let commit = turn.commits.last().map(|commit| commit.end_ns);
        commit.or(turn.reply_ns).unwrap_or(turn.end_ns())
    });
    end_ns.saturating_sub(taken.start_ns())
}

// The lock of an engine that lets one session at a time write the whole database (SQLite): the point in its
// transaction where a session takes the lock, which no call shows.
//
// A session that finds the lock taken sleeps and tries again (`sqlite3_busy_timeout`), so it holds the lock
// from the end of its last sleep. The others took it at their first statement that writes, or at their
// begin, at no known instant. Estimate: as long before the first page of the log or journal as sessions that
// slept, less their work before the first attempt.

const MOST_KEPT: usize = 256;

/// A writing turn's activity, in time on a core since it began.
struct WritingTurn {
    /// Until its first sleep, and until its last one.
    slept: Option<(u64, u64)>,
    /// Until it first wrote to the log or journal.
    wrote_ns: u64,
}

/// The lock, if any session writes; marks the turns that take it.
pub(crate) fn find_database_lock(
    view: &RecordingView<'_>,
    sessions: &mut [Vec<RawTurn<'_>>],
) -> Vec<HotLock> {
    let lock = HotLock {
        name: "the right to write".to_owned(),
        keys: 1,
        observed_share: lock_sleep_share(sessions),
        over_commit: true,
        retry_ns: view.engine.retry_ns.to_vec(),
        late_ns: retry_lateness_ns(view.engine.retry_ns, sessions),
    };
    let turns = sessions.iter_mut().flatten();
    let takers = turns.filter(|turn| turn.ends || !turn.commits.is_empty());
    let taken: Vec<(&mut RawTurn, WritingTurn)> = takers
        .filter_map(|turn| writing_turn(view, turn).map(|writing| (turn, writing)))
        .collect();
    if taken.is_empty() {
        return Vec::new();
    }
    let ahead_ns = lock_before_write_ns(taken.iter().map(|(_, writing)| writing));
    for (turn, writing) in taken {
        let ran_ns = writing.wrote_ns.saturating_sub(ahead_ns);
        let at_ns = writing.slept.map_or(ran_ns, |slept| slept.0);
        turn.locks.push((0, at_ns));
    }
    vec![lock]
}

/// From the first sleep's end to the last one's begin: failed attempts in between are no part of the turn,
/// because a replay makes its own.
pub(crate) fn lock_attempts_span(
    grouping: CommitGrouping,
    turn: &RawTurn<'_>,
) -> Option<(u64, u64)> {
    if grouping != CommitGrouping::Exclusive {
        return None;
    }
    let segments = turn.segments.iter();
    let mut sleeps = segments.filter(|segment| segment.waits_for(WaitCause::Timer));
    let first = sleeps.next()?;
    Some((first.end_ns, sleeps.next_back()?.start_ns))
}

fn writing_turn(view: &RecordingView<'_>, turn: &RawTurn<'_>) -> Option<WritingTurn> {
    let (mut slept, mut wrote_ns) = (None, None);
    let mut cpu_ns = 0;
    for segment in &turn.segments {
        match segment.kind {
            ThreadSegmentKind::Cpu { .. } => {
                cpu_ns += segment.end_ns - segment.start_ns;
            }
            ThreadSegmentKind::Wait {
                cause: WaitCause::Timer,
                ..
            } => {
                slept = Some((slept.map_or(cpu_ns, |slept: (u64, u64)| slept.0), cpu_ns));
                wrote_ns = None;
            }
            ThreadSegmentKind::Call { call, .. } => {
                let writes = call.kind == CallKind::Write
                    && matches!(view.role(call.file), Some(Role::Log | Role::Doublewrite));
                wrote_ns = wrote_ns.or(writes.then_some(cpu_ns));
            }
            ThreadSegmentKind::Ready | ThreadSegmentKind::Wait { .. } => {}
        }
    }
    wrote_ns.map(|wrote_ns| WritingTurn { slept, wrote_ns })
}

/// Assumed time from taking the lock to the first write, for a session that did not sleep.
fn lock_before_write_ns<'a>(all: impl Iterator<Item = &'a WritingTurn>) -> u64 {
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
fn retry_lateness_ns(retry_ns: &[u64], sessions: &[Vec<RawTurn<'_>>]) -> Vec<u64> {
    let turns = sessions.iter().flatten();
    let rests = turns.flat_map(|turn| (0..turn.segments.len()).map(|at| &turn.segments[at..]));
    let mut late: Vec<u64> = rests
        .filter_map(|segments| first_sleep_lateness(retry_ns, segments))
        .filter(|&late| late < PAUSE_NS.get())
        .collect();
    late.sort_unstable();
    let kept = late.len().min(MOST_KEPT);
    (0..kept).map(|at| late[at * late.len() / kept]).collect()
}

/// The lateness, if the first of some segments is a sleep.
fn first_sleep_lateness(retry_ns: &[u64], segments: &[ThreadSegment<'_>]) -> Option<u64> {
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
fn lock_sleep_share(sessions: &[Vec<RawTurn<'_>>]) -> f64 {
    let (mut slept_ns, mut all_ns) = (0, 0);
    for segment in sessions.iter().flatten().flat_map(|turn| &turn.segments) {
        all_ns += segment.time_ns();
        if segment.waits_for(WaitCause::Timer) {
            slept_ns += segment.time_ns();
        }
    }
    slept_ns as f64 / all_ns.max(1) as f64
}
