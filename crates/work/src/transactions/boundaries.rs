//! Where transactions begin and end, and which of them commit invisibly: by the status in replies, else by the shapes
//! of turns.
//!
//! A turn's shape is marked where it says less than is known of the turn, so that turns of one marked shape mean
//! the same. A commit whose log position is already flushed leaves no trace. But it looks like the others from outside:
//! as many bytes received, as many sent, the same statements before it; and a flush has covered it.

use std::collections::{BTreeMap, BTreeSet};

use tierwise_recording::TransactionStatus::{Failed, Idle, InTransaction, Unknown};

use crate::constants::{CHANCE_SHARE, COMMITS_SHARE, EXCEPTIONS_SHARE, FEW_SHARE, MAJORITY_SHARE};
use crate::log::LogFlushes;
use crate::timeline::segments_cpu_ns;
use crate::transactions::turns::{RawTurn, TurnShape};

/// Bits of the bytes sent that mark shapes: of turns within an explicit transaction, of turns that never commit.
const INSIDE: u64 = 1 << 62;
const NEVER: u64 = 1 << 61;
/// Number of shapes examined, the most frequent ones, and their least number of turns.
const CANDIDATES: (usize, u32) = (40, 10);
/// Least number of turns of a shape for a conclusion on the others, and of turns of a shape after another.
const ENOUGH: u32 = 5;
const ENOUGH_PAIRS: u32 = 10;

/// Source of transaction boundaries.
pub(crate) enum BoundarySource {
    /// Replies state them.
    Status,
    /// Clients send BEGIN and COMMIT.
    Words,
    /// Commits alone.
    Unsaid,
}

/// Turns of one kind, and those of them that commit visibly.
#[derive(Clone, Copy, Debug, Default)]
struct CommitTally {
    turns: u32,
    committed: u32,
}

impl CommitTally {
    fn add(&mut self, turn: &RawTurn<'_>) {
        self.turns += 1;
        self.committed += u32::from(!turn.commits.is_empty());
    }

    fn share(self) -> f64 {
        f64::from(self.committed) / f64::from(self.turns)
    }
}

/// Finds where transactions begin and end; marks the shapes of turns accordingly.
pub(crate) fn find_transaction_boundaries(sessions: &mut [Vec<RawTurn<'_>>]) -> BoundarySource {
    if mark_turns_by_status(sessions) {
        return BoundarySource::Status;
    }
    mark_turns_by_previous(sessions);
    match begin_and_commit_shapes(sessions) {
        Some((begin, commit)) => {
            mark_turns_until_commit(sessions, begin, commit);
            BoundarySource::Words
        }
        None => BoundarySource::Unsaid,
    }
}

/// Whether a shape is one of a turn within an explicit transaction.
fn is_within_transaction(shape: TurnShape) -> bool {
    shape.1 & INSIDE != 0
}

/// Whether a turn leaves its session in a transaction; none if its reply does not say, or if it ran no statement.
fn stays_in_transaction(turn: &RawTurn<'_>) -> Option<bool> {
    match turn.status.filter(|_| !turn.ping)? {
        Idle => Some(false),
        InTransaction | Failed => Some(true),
        Unknown => None,
    }
}

/// Marks turns that leave their session in a transaction; false if no reply states the status. A reply without a
/// status is assumed to leave it unchanged.
fn mark_turns_by_status(sessions: &mut [Vec<RawTurn<'_>>]) -> bool {
    let mut known = false;
    for turns in sessions {
        let mut place = None;
        let mut inside = false;
        for turn in turns {
            let here = Some((turn.burst, turn.thread));
            inside &= place == here;
            place = here;
            if let Some(goes_on) = stays_in_transaction(turn) {
                inside = goes_on;
                known = true;
            }
            if inside {
                turn.shape.1 |= INSIDE;
            }
        }
    }
    known
}

/// Marks all turns from a BEGIN to before its COMMIT. An update alone commits itself; between these two it does not,
/// though it looks the same.
fn mark_turns_until_commit(sessions: &mut [Vec<RawTurn<'_>>], begin: TurnShape, commit: TurnShape) {
    for turns in sessions {
        let mut place = None;
        let mut inside = false;
        for index in 0..turns.len() {
            let here = Some((turns[index].burst, turns[index].thread));
            if place != here {
                place = here;
                // Inside, if the first of these statements in the burst is COMMIT.
                let burst = turns[index].burst;
                let same = turns[index..].iter();
                let mut shapes = same
                    .take_while(|turn| turn.burst == burst)
                    .map(|turn| turn.shape);
                let first = shapes.find(|&shape| shape == begin || shape == commit);
                inside = first == Some(commit);
            }
            let turn = &mut turns[index];
            inside = turn.shape != commit && (inside || turn.shape == begin);
            if inside {
                turn.shape.1 |= INSIDE;
            }
        }
    }
}

/// The shapes of BEGIN and COMMIT, if the clients send them: the shortest that alternate, of which one mostly commits
/// and one never does.
fn begin_and_commit_shapes(sessions: &[Vec<RawTurn<'_>>]) -> Option<(TurnShape, TurnShape)> {
    let mut tallies: BTreeMap<TurnShape, CommitTally> = BTreeMap::new();
    let turns = sessions.iter().flatten();
    for turn in turns.filter(|turn| turn.served && turn.complete) {
        tallies.entry(turn.shape).or_default().add(turn);
    }
    let mut frequent: Vec<(TurnShape, CommitTally)> = tallies.into_iter().collect();
    frequent.retain(|(_, tally)| tally.turns >= CANDIDATES.1);
    frequent.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.turns));
    frequent.truncate(CANDIDATES.0);
    let mut found: Option<(TurnShape, TurnShape)> = None;
    let sum = |(begin, commit): (TurnShape, TurnShape)| (commit.0 + begin.0, commit.1 + begin.1);
    for (begin, begins) in &frequent {
        for (commit, commits) in &frequent {
            let like_words = begins.share() <= CHANCE_SHARE.get()
                && commits.share() >= MAJORITY_SHARE.get()
                && begins.turns.abs_diff(commits.turns) <= commits.turns / 5 + 2;
            let pair = (*begin, *commit);
            let shorter = found.is_none_or(|found| sum(pair) < sum(found));
            if like_words && shorter && shapes_alternate(sessions, pair) {
                found = Some(pair);
            }
        }
    }
    found
}

fn shapes_alternate(
    sessions: &[Vec<RawTurn<'_>>],
    (begin, commit): (TurnShape, TurnShape),
) -> bool {
    let (mut unlike, mut all) = (0_u32, 0_u32);
    for turns in sessions {
        let either = |turn: &&RawTurn| turn.shape == begin || turn.shape == commit;
        let mut before: Option<&RawTurn> = None;
        for turn in turns.iter().filter(either) {
            let last = before.replace(turn);
            if let Some(last) = last.filter(|last| last.burst == turn.burst) {
                all += 1;
                unlike += u32::from(last.shape != turn.shape);
            }
        }
    }
    all > 0 && f64::from(unlike) >= (1.0 - EXCEPTIONS_SHARE.get()) * f64::from(all)
}

/// Marks turns that do not commit after their previous turn, where turns of the same shape commit after others.
///
/// BEGIN and COMMIT may have the same length, as prepared statements do. But BEGIN follows the end of a
/// transaction and never commits; COMMIT follows a statement, and mostly does.
fn mark_turns_by_previous(sessions: &mut [Vec<RawTurn<'_>>]) {
    let mut tallies: BTreeMap<(TurnShape, TurnShape), CommitTally> = BTreeMap::new();
    for turns in &*sessions {
        for (turn, before) in turns.iter().zip(previous_shapes(turns)) {
            if let Some(before) = before.filter(|_| turn.complete) {
                tallies.entry((before, turn.shape)).or_default().add(turn);
            }
        }
    }
    tallies.retain(|_, tally| tally.turns >= ENOUGH_PAIRS);
    let commits = |tally: &CommitTally| tally.share() >= COMMITS_SHARE.get();
    let never = |tally: &CommitTally| tally.share() <= CHANCE_SHARE.get();
    let shapes = |those: &dyn Fn(&CommitTally) -> bool| -> BTreeSet<TurnShape> {
        let kept = tallies.iter().filter(|(_, tally)| those(tally));
        kept.map(|(pair, _)| pair.1).collect()
    };
    let ambiguous = &shapes(&commits) & &shapes(&never);
    for turns in sessions {
        let befores = previous_shapes(turns);
        for (turn, before) in turns.iter_mut().zip(befores) {
            if !ambiguous.contains(&turn.shape) {
                continue;
            }
            let tally = before.and_then(|before| tallies.get(&(before, turn.shape)));
            // After a shape that tells nothing, only a visible commit tells.
            if tally.is_some_and(never) || (!tally.is_some_and(commits) && turn.commits.is_empty())
            {
                turn.shape.1 |= NEVER;
            }
        }
    }
}

/// Of each turn, the shape of the previous one, if that turn was recorded whole.
fn previous_shapes(turns: &[RawTurn<'_>]) -> Vec<Option<TurnShape>> {
    let mut before: Option<&RawTurn> = None;
    let of_each = turns.iter().map(|turn| {
        let last = before.replace(turn)?;
        let whole = last.served && last.complete;
        let follows = (last.burst, last.thread) == (turn.burst, turn.thread);
        (whole && follows && turn.served).then_some(last.shape)
    });
    of_each.collect()
}

/// Turns of one shape, and the sum over their visible commits of the share of the turn's time on the core before.
type ShapeTallies = BTreeMap<TurnShape, (CommitTally, f64)>;

/// Sets of each turn whether it ends a transaction, and its hidden commit. `expected`: the number of transactions that
/// were counted separately.
pub(crate) fn set_transaction_ends(
    sessions: &mut [Vec<RawTurn<'_>>],
    boundaries: BoundarySource,
    expected: Option<f64>,
    flushes: &LogFlushes,
) {
    let shapes = shape_tallies(sessions);
    for turn in sessions.iter_mut().flatten() {
        turn.ends = ends_transaction(turn, &shapes);
    }
    add_invisible_commits(sessions, &shapes, flushes);
    let turns = || sessions.iter().flatten();
    let any_commit = turns().any(|turn| !turn.commits.is_empty());
    // Outside a transaction, a statement is a transaction of its own, whether it writes or not.
    let alone = |turn: &RawTurn| {
        turn.reply_ns.is_some() && !turn.ping && !is_within_transaction(turn.shape)
    };
    let off = |count: usize| {
        let count = (count as f64).max(0.5);
        expected.map_or(0.0, |expected| (count / expected).ln().abs())
    };
    let commits_off = off(turns().filter(|turn| turn.ends).count());
    let alone_off = off(turns().filter(|turn| turn.ends || alone(turn)).count());
    let every = match boundaries {
        BoundarySource::Status => !any_commit,
        BoundarySource::Words => alone_off <= commits_off + EXCEPTIONS_SHARE.get(),
        BoundarySource::Unsaid => !any_commit || alone_off + EXCEPTIONS_SHARE.get() < commits_off,
    };
    for turn in sessions.iter_mut().flatten() {
        let by_journal = !any_commit && !turn.served && !turn.even;
        turn.ends |= (every && alone(turn)) || by_journal;
    }
    let turns = || sessions.iter().flatten();
    let ended = turns().filter(|turn| turn.ends).count();
    if are_few_transactions(ended, ended + turns().filter(|turn| turn.even).count()) {
        let slices = sessions.iter_mut().flatten().filter(|turn| turn.even);
        slices.for_each(|slice| slice.ends = true);
    }
}

/// Whether so few of all ends of turns are of transactions that the others, slices of time, are the unit of work.
pub(crate) fn are_few_transactions(transactions: usize, ends: usize) -> bool {
    transactions as f64 <= FEW_SHARE.get() * ends as f64
}

fn shape_tallies(sessions: &[Vec<RawTurn<'_>>]) -> ShapeTallies {
    let mut shapes = ShapeTallies::new();
    let turns = sessions.iter().flatten();
    for turn in turns.filter(|turn| turn.served && turn.complete) {
        let (tally, before) = shapes.entry(turn.shape).or_default();
        tally.add(turn);
        if let Some(commit) = turn.commits.last() {
            let before_ns = segments_cpu_ns(&turn.segments[..commit.segment as usize]);
            *before += before_ns as f64 / turn.cpu_ns().max(1) as f64;
        }
    }
    shapes
}

/// Whether turns of a tally commit; none if there are too few.
fn tally_commits(tally: &CommitTally) -> Option<bool> {
    (tally.turns >= ENOUGH).then(|| tally.share() >= COMMITS_SHARE.get())
}

/// Whether a turn ends a transaction: by its reply's status, by its shape, else by a visible commit. A turn
/// that commits and leaves its session in a transaction has begun the next.
fn ends_transaction(turn: &RawTurn<'_>, shapes: &ShapeTallies) -> bool {
    let seen = !turn.commits.is_empty();
    let like = shapes
        .get(&turn.shape)
        .and_then(|(tally, _)| tally_commits(tally));
    match stays_in_transaction(turn) {
        Some(false) => true,
        Some(true) => like == Some(true),
        None if turn.served && turn.complete => like.unwrap_or(seen),
        None => seen,
    }
}

/// Adds invisible commits, where transactions of the same statements mostly show one and a flush can have covered it:
/// a commit is durable once a flush that began after it has ended, so that a transaction without such a flush wrote nothing.
fn add_invisible_commits(
    sessions: &mut [Vec<RawTurn<'_>>],
    shapes: &ShapeTallies,
    flushes: &LogFlushes,
) {
    let mut signatures: BTreeMap<u64, CommitTally> = BTreeMap::new();
    let mut ending: Vec<(u64, &mut RawTurn<'_>)> = Vec::new();
    for turns in sessions {
        let mut signature = 0;
        for turn in turns {
            signature |= shape_bit(turn.shape);
            if turn.ends {
                signatures.entry(signature).or_default().add(turn);
                ending.push((signature, turn));
                signature = 0;
            }
        }
    }
    for (signature, turn) in ending {
        let shape = shapes.get(&turn.shape);
        let mostly = tally_commits(&signatures[&signature]);
        let mostly = mostly.or_else(|| shape.and_then(|(tally, _)| tally_commits(tally)));
        let covered = || {
            let replied_ns = turn.reply_ns.unwrap_or_else(|| turn.end_ns());
            flushes.any_within(turn.start_ns(), replied_ns)
        };
        if turn.commits.is_empty() && turn.served && mostly == Some(true) && covered() {
            let share = shape.map_or(0.5, |(tally, before)| {
                before / f64::from(tally.committed.max(1))
            });
            turn.hidden_commit_ns = Some((turn.cpu_ns() as f64 * share) as u64);
        }
    }
}

/// A bit for a shape, for sets of shapes; two shapes may share one.
fn shape_bit(shape: TurnShape) -> u64 {
    let mixed = (shape.0 ^ shape.1.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    1 << (mixed >> 58)
}
