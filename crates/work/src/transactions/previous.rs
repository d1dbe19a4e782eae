//! Requests of one shape with two meanings, distinguished by the previous request.
//!
//! BEGIN and COMMIT may have the same length, as prepared statements do. But BEGIN follows the end of a
//! transaction and never commits; COMMIT follows a statement, and mostly does.

use std::collections::{BTreeMap, BTreeSet};

use crate::constants::{COMMITS_SHARE, NEVER_COMMITS_SHARE};
use crate::transactions::turns::RawTurn;

/// Bit that marks shapes of turns that never commit.
const NEVER: u64 = 1 << 61;
/// Least number of turns after a shape for a conclusion.
const ENOUGH: u32 = 10;

type Shape = (u64, u64);
/// Shapes of turns with the shape of each previous turn.
type Pairs = BTreeSet<(Shape, Shape)>;

/// Marks the shapes of turns that do not commit after their previous turn, where turns of the same shape
/// commit after others.
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
            // After a shape in neither set, only a visible commit tells.
            if after(&never) || (!after(&commit) && turn.commits.is_empty()) {
                turn.shape.1 |= NEVER;
            }
        }
    }
}

/// Pairs of shapes whose second mostly commits after the first, and those whose second never does.
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

/// Of each turn, the shape of the previous one, if that turn was recorded whole.
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
