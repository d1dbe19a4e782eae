//! Turns within an explicit transaction, distinguished from the same statements outside of one.
//!
//! An update alone commits itself; between BEGIN and COMMIT it does not, though it looks the same. These two
//! statements are found as shapes of turns that alternate: one that mostly commits, and one that never does.

use std::collections::BTreeMap;

use crate::constants::{ALTERNATES_SHARE, BEGIN_WORD_MOST_SHARE, COMMIT_WORD_SHARE};
use crate::transactions::turns::RawTurn;

/// Bit that marks the shape of a turn within a transaction.
const INSIDE: u64 = 1 << 62;
/// Number of shapes examined, the most frequent ones, and their least number of turns.
const CANDIDATES: (usize, u32) = (40, 10);

type Shape = (u64, u64);

/// Whether a shape is one of a turn within an explicit transaction.
pub(crate) fn is_inside(shape: Shape) -> bool {
    shape.1 & INSIDE != 0
}

/// Source of transaction boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Boundaries {
    /// Replies state them.
    Status,
    /// Clients send BEGIN and COMMIT.
    Words,
    /// Commits alone.
    Unsaid,
}

/// Marks the shape of a turn within a transaction.
pub(crate) fn put_inside(turn: &mut RawTurn) {
    turn.shape.1 |= INSIDE;
}

/// Marks the shapes of all turns from a BEGIN to before its COMMIT; none if clients do not send these
/// statements.
pub(crate) fn mark_inside(sessions: &mut [Vec<RawTurn>]) -> Option<Boundaries> {
    let (begin, commit) = words(sessions)?;
    for turns in sessions {
        let mut burst = None;
        let mut inside = false;
        for index in 0..turns.len() {
            if burst != Some((turns[index].burst, turns[index].thread)) {
                burst = Some((turns[index].burst, turns[index].thread));
                inside = starts_inside(&turns[index..], begin, commit);
            }
            let shape = turns[index].shape;
            if shape == commit {
                inside = false;
            } else {
                inside |= shape == begin;
                if inside {
                    put_inside(&mut turns[index]);
                }
            }
        }
    }
    Some(Boundaries::Words)
}

/// Whether the first of these statements in a burst is COMMIT.
fn starts_inside(turns: &[RawTurn], begin: Shape, commit: Shape) -> bool {
    let burst = turns[0].burst;
    let same = turns
        .iter()
        .take_while(|turn| turn.burst == burst)
        .map(|turn| turn.shape);
    same.into_iter()
        .find(|&shape| shape == begin || shape == commit)
        == Some(commit)
}

/// The shapes of BEGIN and COMMIT, if the clients send them: the shortest that alternate.
fn words(sessions: &[Vec<RawTurn>]) -> Option<(Shape, Shape)> {
    let mut tallies: BTreeMap<Shape, (u32, u32)> = BTreeMap::new();
    for turn in sessions
        .iter()
        .flatten()
        .filter(|turn| turn.served && turn.complete)
    {
        let tally = tallies.entry(turn.shape).or_default();
        tally.0 += 1;
        tally.1 += u32::from(!turn.commits.is_empty());
    }
    let mut frequent: Vec<(Shape, u32, f64)> = tallies
        .into_iter()
        .filter(|&(_, (turns, _))| turns >= CANDIDATES.1)
        .map(|(shape, (turns, seen))| (shape, turns, f64::from(seen) / f64::from(turns)))
        .collect();
    frequent.sort_by_key(|&(_, turns, _)| std::cmp::Reverse(turns));
    frequent.truncate(CANDIDATES.0);
    let begins = frequent
        .iter()
        .filter(|(_, _, share)| *share <= BEGIN_WORD_MOST_SHARE.get());
    let pairs = begins.flat_map(|begin| {
        let commits = frequent
            .iter()
            .filter(|(_, _, share)| *share >= COMMIT_WORD_SHARE.get());
        commits.map(move |commit| (begin, commit))
    });
    pairs
        .filter(|(begin, commit)| begin.1.abs_diff(commit.1) <= commit.1 / 5 + 2)
        .filter(|(begin, commit)| alternate(sessions, begin.0, commit.0))
        .map(|(begin, commit)| (begin.0, commit.0))
        .min_by_key(|(begin, commit)| (commit.0 + begin.0, commit.1 + begin.1))
}

fn alternate(sessions: &[Vec<RawTurn>], begin: Shape, commit: Shape) -> bool {
    let (mut unlike, mut all) = (0_u32, 0_u32);
    for turns in sessions {
        let mut before: Option<(u32, Shape)> = None;
        for turn in turns
            .iter()
            .filter(|turn| turn.shape == begin || turn.shape == commit)
        {
            if let Some((burst, shape)) = before
                && burst == turn.burst
            {
                all += 1;
                unlike += u32::from(shape != turn.shape);
            }
            before = Some((turn.burst, turn.shape));
        }
    }
    all > 0 && f64::from(unlike) >= ALTERNATES_SHARE.get() * f64::from(all)
}
