//! Which turns end transactions, and which of those commit invisibly.
//!
//! A commit whose log position is already flushed leaves no trace. But it looks like the others from outside:
//! as many bytes received, as many sent, the same statements before it.

use std::collections::BTreeMap;

use crate::constants::{COMMITS_SHARE, MORE_LIKELY_LN};
use crate::timeline::segments::cpu_ns;
use crate::transactions::boundaries::{Boundaries, Tally, goes_on, is_inside};
use crate::transactions::turns::{RawTurn, Shape};

/// Least number of turns of a shape for a conclusion on the others.
const ENOUGH: u32 = 5;

/// Turns of one shape, and the sum over their visible commits of the share of the turn's time on the core before.
type Shapes = BTreeMap<Shape, (Tally, f64)>;

/// Sets of each turn whether it ends a transaction, and its hidden commit. `expected`: the number of transactions that
/// were counted separately.
pub(crate) fn set_ends(
    sessions: &mut [Vec<RawTurn<'_>>],
    boundaries: Boundaries,
    expected: Option<f64>,
) {
    let shapes = shapes(sessions);
    for turn in sessions.iter_mut().flatten() {
        turn.ends = ends(turn, &shapes);
    }
    hide(sessions, &shapes);
    let turns = || sessions.iter().flatten();
    let any_commit = turns().any(|turn| !turn.commits.is_empty());
    // Outside a transaction, a statement is a transaction of its own, whether it writes or not.
    let alone = |turn: &RawTurn| turn.reply_ns.is_some() && !turn.ping && !is_inside(turn.shape);
    let off = |count: usize| {
        let count = (count as f64).max(0.5);
        expected.map_or(0.0, |expected| (count / expected).ln().abs())
    };
    let commits_off = off(turns().filter(|turn| turn.ends).count());
    let alone_off = off(turns().filter(|turn| turn.ends || alone(turn)).count());
    let every = match boundaries {
        Boundaries::Status => !any_commit,
        Boundaries::Words => alone_off <= commits_off + MORE_LIKELY_LN.get(),
        Boundaries::Unsaid => !any_commit || alone_off + MORE_LIKELY_LN.get() < commits_off,
    };
    for turn in sessions.iter_mut().flatten() {
        turn.ends |= (every && alone(turn)) || (!any_commit && !turn.served);
    }
}

fn shapes(sessions: &[Vec<RawTurn<'_>>]) -> Shapes {
    let mut shapes = Shapes::new();
    let turns = sessions.iter().flatten();
    for turn in turns.filter(|turn| turn.served && turn.complete) {
        let (tally, before) = shapes.entry(turn.shape).or_default();
        tally.add(turn);
        if let Some(commit) = turn.commits.last() {
            let before_ns = cpu_ns(&turn.segments[..commit.segment as usize]);
            *before += before_ns as f64 / turn.cpu_ns().max(1) as f64;
        }
    }
    shapes
}

/// Whether turns of a tally commit; none if there are too few.
fn commits(tally: &Tally) -> Option<bool> {
    (tally.turns >= ENOUGH).then(|| tally.share() >= COMMITS_SHARE.get())
}

/// Whether a turn ends a transaction: by its reply's status, by its shape, else by a visible commit. A turn
/// that commits and leaves its session in a transaction has begun the next.
fn ends(turn: &RawTurn<'_>, shapes: &Shapes) -> bool {
    let seen = !turn.commits.is_empty();
    let like = shapes
        .get(&turn.shape)
        .and_then(|(tally, _)| commits(tally));
    match goes_on(turn) {
        Some(false) => true,
        Some(true) => like == Some(true),
        None if turn.served && turn.complete => like.unwrap_or(seen),
        None => seen,
    }
}

/// Adds invisible commits, where transactions of the same statements mostly show one.
fn hide(sessions: &mut [Vec<RawTurn<'_>>], shapes: &Shapes) {
    let mut signatures: BTreeMap<u64, Tally> = BTreeMap::new();
    let mut ending: Vec<(u64, &mut RawTurn<'_>)> = Vec::new();
    for turns in sessions {
        let mut signature = 0;
        for turn in turns {
            signature |= bit(turn.shape);
            if turn.ends {
                signatures.entry(signature).or_default().add(turn);
                ending.push((signature, turn));
                signature = 0;
            }
        }
    }
    for (signature, turn) in ending {
        let shape = shapes.get(&turn.shape);
        let mostly = commits(&signatures[&signature]);
        let mostly = mostly.or_else(|| shape.and_then(|(tally, _)| commits(tally)));
        if turn.commits.is_empty() && turn.served && mostly == Some(true) {
            let share = shape.map_or(0.5, |(tally, before)| {
                before / f64::from(tally.committed.max(1))
            });
            turn.hidden_commit_ns = Some((turn.cpu_ns() as f64 * share) as u64);
        }
    }
}

/// A bit for a shape, for sets of shapes; two shapes may share one.
fn bit(shape: Shape) -> u64 {
    let mixed = (shape.0 ^ shape.1.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    1 << (mixed >> 58)
}
