//! Requests of one shape that mean two things, told apart by the request before them.
//!
//! "begin" and "commit" may be of the same length, as prepared statements are. But one follows the end of a transaction
//! and never commits; the other follows a statement, and mostly does.

use std::collections::{BTreeMap, BTreeSet};

use crate::constants::{COMMITS_SHARE, NEVER_COMMITS_SHARE};
use crate::transactions::turns::RawTurn;

/// What sets those apart that never commit.
const NEVER: u64 = 1 << 61;
/// Fewer turns after a shape than these tell nothing.
const ENOUGH: u32 = 10;

type Shape = (u64, u64);
/// Shapes of turns with the shape of the turn before each.
type Pairs = BTreeSet<(Shape, Shape)>;

/// Changes the shapes of turns that do not commit after the turn before them, where turns of their shape do after
/// others.
pub(crate) fn tell_apart(sessions: &mut [Vec<RawTurn>]) {
    let (commit, never) = pairs(sessions);
    let commits: BTreeSet<Shape> = commit.iter().map(|pair| pair.1).collect();
    let ambiguous: BTreeSet<Shape> = (never.iter().map(|pair| pair.1))
        .filter(|shape| commits.contains(shape))
        .collect();
    for turns in sessions {
        let befores = befores(turns);
        for (turn, before) in turns.iter_mut().zip(befores) {
            if !ambiguous.contains(&turn.shape) {
                continue;
            }
            let after =
                |pairs: &Pairs| before.is_some_and(|before| pairs.contains(&(before, turn.shape)));
            // After what says nothing, only what it shows is known.
            if after(&never) || (!after(&commit) && turn.commits.is_empty()) {
                turn.shape.1 |= NEVER;
            }
        }
    }
}

/// Pairs of shapes of which the second mostly commits after the first, and those of which it never does.
fn pairs(sessions: &[Vec<RawTurn>]) -> (Pairs, Pairs) {
    let mut tallies: BTreeMap<(Shape, Shape), (u32, u32)> = BTreeMap::new();
    for turns in sessions {
        for (turn, before) in turns.iter().zip(befores(turns)) {
            let Some(before) = before.filter(|_| turn.complete) else {
                continue;
            };
            let tally = tallies.entry((before, turn.shape)).or_default();
            tally.0 += 1;
            tally.1 += u32::from(!turn.commits.is_empty());
        }
    }
    tallies.retain(|_, tally| tally.0 >= ENOUGH);
    let share = |tally: &(u32, u32)| f64::from(tally.1) / f64::from(tally.0);
    let those = |keep: &dyn Fn(f64) -> bool| {
        let kept = tallies.iter().filter(|(_, tally)| keep(share(tally)));
        kept.map(|(pair, _)| *pair).collect()
    };
    (
        those(&|share| share >= COMMITS_SHARE.get()),
        those(&|share| share <= NEVER_COMMITS_SHARE.get()),
    )
}

/// Of each turn, the shape of the one before it, if that is known whole.
fn befores(turns: &[RawTurn]) -> Vec<Option<Shape>> {
    let mut before: Option<&RawTurn> = None;
    let of_each = turns.iter().map(|turn| {
        let last = before.replace(turn)?;
        let whole = last.served && last.complete;
        let follows = (last.burst, last.thread) == (turn.burst, turn.thread);
        (whole && follows && turn.served).then_some(last.shape)
    });
    of_each.collect()
}
