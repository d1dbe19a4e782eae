//! Which turns end transactions, and which of those commit invisibly.
//!
//! A commit whose log position is already flushed leaves no trace. But it looks like the others from outside:
//! as many bytes received, as many sent, the same statements before it.

use std::collections::BTreeMap;

use crate::constants::{COMMITS_SHARE, MORE_LIKELY_LN};
use crate::transactions::explicit_transactions::{Boundaries, is_inside};
use crate::transactions::status::goes_on;
use crate::transactions::turns::RawTurn;

/// Least number of turns of a shape for a conclusion on the others.
const ENOUGH: u32 = 5;

/// Meaning of a turn, beyond its segments.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Meaning {
    /// Whether a transaction ends with it.
    pub(crate) ends: bool,
    /// Time on the core after which it commits invisibly.
    pub(crate) hidden_commit_ns: Option<u64>,
    /// Locks it takes: index, and the time on the core before that.
    pub(crate) locks: Vec<(u16, u64)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    turns: u32,
    committed: u32,
    /// Sum over visible commits of the share of the turn's time on the core before them.
    before: f64,
}

impl Tally {
    fn add(&mut self, committed: bool) {
        self.turns += 1;
        self.committed += u32::from(committed);
    }

    fn commits(&self) -> Option<bool> {
        let share = f64::from(self.committed) / f64::from(self.turns);
        (self.turns >= ENOUGH).then_some(share >= COMMITS_SHARE.get())
    }
}

/// The meaning of each turn of each session. `expected`: the number of transactions that were counted
/// separately.
pub(crate) fn meanings(
    sessions: &[Vec<RawTurn>],
    boundaries: Boundaries,
    expected: Option<f64>,
) -> Vec<Vec<Meaning>> {
    let shapes = shapes(sessions);
    let mut all: Vec<Vec<Meaning>> = sessions.iter().map(|turns| ends(turns, &shapes)).collect();
    hide(sessions, &shapes, &mut all);
    let any_commit = sessions
        .iter()
        .flatten()
        .any(|turn| !turn.commits.is_empty());
    // Outside a transaction, a statement is a transaction of its own, whether it writes or not.
    let alone = |turn: &RawTurn| turn.reply_ns.is_some() && !turn.ping && !is_inside(turn.shape);
    let count = |by: &dyn Fn(&RawTurn, &Meaning) -> bool| {
        let turns = sessions.iter().flatten().zip(all.iter().flatten());
        turns.filter(|(turn, meaning)| by(turn, meaning)).count() as f64
    };
    let off = |count: f64| expected.map_or(0.0, |expected| (count.max(0.5) / expected).ln().abs());
    let commits_off = off(count(&|_, meaning| meaning.ends));
    let alone_off = off(count(&|turn, meaning| meaning.ends || alone(turn)));
    let every = match boundaries {
        Boundaries::Status => !any_commit,
        Boundaries::Words => alone_off <= commits_off + MORE_LIKELY_LN.get(),
        Boundaries::Unsaid => !any_commit || alone_off + MORE_LIKELY_LN.get() < commits_off,
    };
    for (turn, meaning) in sessions.iter().flatten().zip(all.iter_mut().flatten()) {
        meaning.ends |= (every && alone(turn)) || (!any_commit && !turn.served);
    }
    all
}

fn shapes(sessions: &[Vec<RawTurn>]) -> BTreeMap<(u64, u64), Tally> {
    let mut shapes: BTreeMap<(u64, u64), Tally> = BTreeMap::new();
    for turn in sessions
        .iter()
        .flatten()
        .filter(|turn| turn.served && turn.complete)
    {
        let tally = shapes.entry(turn.shape).or_default();
        tally.add(!turn.commits.is_empty());
        if let Some(commit) = turn.commits.last() {
            let before = turn.segments[..commit.segment as usize].to_vec();
            let before = RawTurn {
                segments: before,
                ..RawTurn::default()
            };
            tally.before += before.cpu_ns() as f64 / turn.cpu_ns().max(1) as f64;
        }
    }
    shapes
}

/// Turns that end a transaction: by their replies' status, by their shape, else by visible commits. A turn
/// that commits and leaves its session in a transaction has begun the next.
fn ends(turns: &[RawTurn], shapes: &BTreeMap<(u64, u64), Tally>) -> Vec<Meaning> {
    let end = |turn: &RawTurn| {
        let seen = !turn.commits.is_empty();
        let like = shapes.get(&turn.shape).and_then(Tally::commits);
        let ends = match goes_on(turn) {
            Some(false) => true,
            Some(true) => like == Some(true),
            None if turn.served && turn.complete => like.unwrap_or(seen),
            None => seen,
        };
        Meaning {
            ends,
            ..Meaning::default()
        }
    };
    turns.iter().map(end).collect()
}

/// Adds invisible commits, where transactions of the same statements mostly show one.
fn hide(sessions: &[Vec<RawTurn>], shapes: &BTreeMap<(u64, u64), Tally>, all: &mut [Vec<Meaning>]) {
    let mut signatures: BTreeMap<u64, Tally> = BTreeMap::new();
    let mut ending: Vec<(usize, usize, u64, bool)> = Vec::new();
    for (session, turns) in sessions.iter().enumerate() {
        let mut signature = 0;
        for (index, turn) in turns.iter().enumerate() {
            signature |= bit(turn.shape);
            if all[session][index].ends {
                let seen = !turn.commits.is_empty();
                signatures.entry(signature).or_default().add(seen);
                ending.push((session, index, signature, seen));
                signature = 0;
            }
        }
    }
    for (session, index, signature, seen) in ending {
        let turn = &sessions[session][index];
        let shape = shapes.get(&turn.shape);
        let mostly = signatures[&signature].commits();
        let mostly = mostly.or_else(|| shape.and_then(Tally::commits));
        if seen || !turn.served || mostly != Some(true) {
            continue;
        }
        let share = shape.map_or(0.5, |tally| {
            tally.before / f64::from(tally.committed.max(1))
        });
        all[session][index].hidden_commit_ns = Some((turn.cpu_ns() as f64 * share) as u64);
    }
}

/// A bit for a shape, for sets of shapes; two shapes may share one.
fn bit(shape: (u64, u64)) -> u64 {
    let mixed = (shape.0 ^ shape.1.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    1 << (mixed >> 58)
}
