//! Hot locks: held by transactions until they commit, found by which thread wakes which and when; the number
//! of keys is fitted.

use std::collections::BTreeMap;

use crate::HotLock;
use crate::constants::{HELD_LOCK_LEAST_SHARE, LOCK_RELEASE_NS, RELEASED_LOCK_LEAST_SHARE};
use crate::index::view::View;
use crate::timeline::segments::SegmentKind;
use crate::timeline::wait::WaitCause;
use crate::transactions::thread_dependencies::ThreadDependencies;
use crate::transactions::turn_meaning::Meaning;
use crate::transactions::turns::RawTurn;

/// Least number of waits to fit a number of keys.
const LEAST_WAITS: usize = 10;
/// Largest number of locks distinguished.
const MOST_LOCKS: usize = 16;

/// A wait for another session that ended about when that one committed.
#[derive(Clone, Copy, Debug)]
struct LockWait {
    session: usize,
    turn: usize,
    over_commit: bool,
    waited_ns: u64,
    /// Time on the core before it in its turn, as a share of the whole.
    before: f64,
}

/// Observations of one lock.
#[derive(Clone, Debug, Default)]
struct LockGroup {
    waits: Vec<LockWait>,
    waited_ns: u64,
}

impl LockGroup {
    /// Whether most of the holders kept it until their commit had ended.
    fn over_commit(&self) -> bool {
        let over = self.waits.iter().filter(|wait| wait.over_commit);
        2 * over.count() >= self.waits.len()
    }
}

/// Hot locks, and in `meanings` the turns that take them; also the share of time in unexplained waits.
pub(crate) fn find(
    view: &View<'_>,
    dependencies: &ThreadDependencies,
    sessions: &[Vec<RawTurn>],
    meanings: &mut [Vec<Meaning>],
) -> (Vec<HotLock>, f64) {
    let total_ns = total_ns(sessions).max(1) as f64;
    let (waits, other_ns) = lock_waits(view, dependencies, sessions);
    let mut groups: BTreeMap<(u64, u64), LockGroup> = BTreeMap::new();
    for wait in waits {
        let group = groups
            .entry(sessions[wait.session][wait.turn].shape)
            .or_default();
        group.waited_ns += wait.waited_ns;
        group.waits.push(wait);
    }
    let hot = |group: &LockGroup| {
        let least = if group.over_commit() {
            HELD_LOCK_LEAST_SHARE.get()
        } else {
            RELEASED_LOCK_LEAST_SHARE.get()
        };
        group.waits.len() >= LEAST_WAITS && group.waited_ns as f64 / total_ns >= least
    };
    let mut groups: Vec<_> = groups.into_iter().filter(|(_, group)| hot(group)).collect();
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.waited_ns));
    groups.truncate(MOST_LOCKS);
    let mut locks = Vec::new();
    for (index, (shape, group)) in groups.iter().enumerate() {
        let taken = mark(sessions, meanings, *shape, group, index as u16);
        let keys = keys(sessions, meanings, group, &taken);
        locks.push(HotLock {
            name: format!("lock {}", index + 1),
            keys,
            observed_share: group.waited_ns as f64 / total_ns,
            over_commit: group.over_commit(),
            retry_ns: Vec::new(),
            late_ns: Vec::new(),
        });
    }
    (locks, other_ns as f64 / total_ns)
}

fn total_ns(sessions: &[Vec<RawTurn>]) -> u64 {
    let turns = sessions.iter().flatten();
    turns.map(|turn| turn.end_ns() - turn.start_ns()).sum()
}

/// Waits for transactions' locks, and the time of other waits for sessions.
fn lock_waits(
    view: &View<'_>,
    dependencies: &ThreadDependencies,
    sessions: &[Vec<RawTurn>],
) -> (Vec<LockWait>, u64) {
    let mut owner: BTreeMap<u32, Vec<&RawTurn>> = BTreeMap::new();
    for turn in sessions.iter().flatten() {
        owner.entry(turn.thread).or_default().push(turn);
    }
    let (mut waits, mut other_ns) = (Vec::new(), 0);
    for (session, turns) in sessions.iter().enumerate() {
        for (number, turn) in turns.iter().enumerate() {
            let cpu_ns = turn.cpu_ns().max(1) as f64;
            let mut before_ns = 0;
            for segment in &turn.segments {
                let SegmentKind::Wait { cause, state } = segment.kind else {
                    if matches!(segment.kind, SegmentKind::Cpu { .. }) {
                        before_ns += segment.time_ns();
                    }
                    continue;
                };
                if cause != WaitCause::Thread || dependencies.awaited(turn.thread, state).is_some()
                {
                    continue;
                }
                let waker = view.states(turn.thread)[state as usize].waker;
                let committed = turn.commits.iter().any(|c| c.end_ns <= segment.start_ns);
                match released(owner.get(&waker), segment.end_ns) {
                    Some(over_commit) if !committed => waits.push(LockWait {
                        session,
                        turn: number,
                        over_commit,
                        waited_ns: segment.time_ns(),
                        before: before_ns as f64 / cpu_ns,
                    }),
                    _ => other_ns += segment.time_ns(),
                }
            }
        }
    }
    (waits, other_ns)
}

/// Whether the waker released at the end of its commit (true), at its begin (false), or at neither.
fn released(turns: Option<&Vec<&RawTurn>>, time_ns: u64) -> Option<bool> {
    let turns = turns?;
    let after = turns.partition_point(|turn| turn.start_ns() <= time_ns);
    let turn = turns[..after].last()?;
    let reply_ns = turn.reply_ns.unwrap_or(u64::MAX);
    for commit in &turn.commits {
        if commit.end_ns <= time_ns && time_ns <= reply_ns.max(commit.end_ns) {
            return Some(true);
        }
        if commit.start_ns > time_ns && commit.start_ns - time_ns < LOCK_RELEASE_NS.get() {
            return Some(false);
        }
    }
    None
}

/// Makes every turn of a shape take the lock; returns the turns that do. A session whose transactions never
/// end takes none, because it would keep the lock.
fn mark(
    sessions: &[Vec<RawTurn>],
    meanings: &mut [Vec<Meaning>],
    shape: (u64, u64),
    group: &LockGroup,
    lock: u16,
) -> Vec<(usize, usize)> {
    let before = group.waits.iter().map(|wait| wait.before).sum::<f64>() / group.waits.len() as f64;
    let mut taken = Vec::new();
    for (session, turns) in sessions.iter().enumerate() {
        if !meanings[session].iter().any(|meaning| meaning.ends) {
            continue;
        }
        for (number, turn) in turns.iter().enumerate() {
            if turn.shape == shape && (turn.complete || !turn.served) {
                let at_ns = (turn.cpu_ns() as f64 * before) as u64;
                meanings[session][number].locks.push((lock, at_ns));
                taken.push((session, number));
            }
        }
    }
    taken
}

/// Number of keys that reproduces the number of takers that waited: a taker meets another session's key with
/// a probability of held keys over keys.
fn keys(
    sessions: &[Vec<RawTurn>],
    meanings: &[Vec<Meaning>],
    group: &LockGroup,
    taken: &[(usize, usize)],
) -> u32 {
    let waited = group.waits.len().max(1) as f64;
    let chance = (waited / taken.len().max(1) as f64).min(1.0);
    let held_ns: u64 = taken
        .iter()
        .map(|&(session, turn)| held_ns(&sessions[session], &meanings[session], turn))
        .sum();
    let held_ns = held_ns.saturating_sub(group.waited_ns) as f64;
    let held_keys = held_ns / total_ns(sessions).max(1) as f64 * (sessions.len() as f64 - 1.0);
    (held_keys / chance).round().clamp(1.0, 1e6) as u32
}

/// From a turn that takes a lock until its transaction's commit.
fn held_ns(turns: &[RawTurn], meanings: &[Meaning], taken: usize) -> u64 {
    let burst = turns[taken].burst;
    let end = turns[taken..]
        .iter()
        .zip(&meanings[taken..])
        .take_while(|(turn, _)| turn.burst == burst)
        .find(|(_, meaning)| meaning.ends)
        .map_or(turns[taken].end_ns(), |(turn, _)| {
            let commit = turn.commits.last().map(|commit| commit.end_ns);
            commit.or(turn.reply_ns).unwrap_or(turn.end_ns())
        });
    end.saturating_sub(turns[taken].start_ns())
}
