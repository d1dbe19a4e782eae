//! Which turns end transactions, and which of those commit although nothing shows it.
//!
//! A commit that finds its place in the log flushed already leaves no trace. But it looks like the others from
//! outside: as many bytes received, as many sent, the same statements before it.

use std::collections::BTreeMap;

use crate::cut::RawTurn;

/// Turns of one shape of which this share commits visibly are commits, all of them.
const COMMITS_SHARE: f64 = 0.3;
/// Fewer turns of a shape than these tell nothing of the others.
const ENOUGH: u32 = 5;

/// What is known of a turn beyond its pieces.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Meaning {
    /// Whether a transaction ends with it.
    pub(crate) ends: bool,
    /// Time on the core after which it commits unseen.
    pub(crate) hidden_commit_ns: Option<u64>,
    /// Locks it takes: index, and the time on the core after which it does.
    pub(crate) locks: Vec<(u16, u64)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    turns: u32,
    committed: u32,
    /// Sum over visible commits of the share of the turn's time on the core that came before.
    before: f64,
}

impl Tally {
    fn add(&mut self, committed: bool) {
        self.turns += 1;
        self.committed += u32::from(committed);
    }

    fn commits(&self) -> Option<bool> {
        let share = f64::from(self.committed) / f64::from(self.turns);
        (self.turns >= ENOUGH).then_some(share >= COMMITS_SHARE)
    }
}

/// What each turn of each session means. `expected` is the number of transactions that were counted otherwise.
pub(crate) fn meanings(sessions: &[Vec<RawTurn>], expected: Option<f64>) -> Vec<Vec<Meaning>> {
    let shapes = shapes(sessions);
    let mut all: Vec<Vec<Meaning>> = sessions.iter().map(|turns| ends(turns, &shapes)).collect();
    hide(sessions, &shapes, &mut all);
    let any_commit = sessions
        .iter()
        .flatten()
        .any(|turn| !turn.commits.is_empty());
    if !any_commit || every_turn_counts(sessions, &all, expected) {
        for (turns, meanings) in sessions.iter().zip(&mut all) {
            for (turn, meaning) in turns.iter().zip(meanings) {
                meaning.ends |= if turn.served {
                    turn.reply_ns.is_some()
                } else {
                    !any_commit
                };
            }
        }
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
            let before = turn.pieces[..commit.piece as usize].to_vec();
            let before = RawTurn {
                pieces: before,
                ..RawTurn::default()
            };
            tally.before += before.cpu_ns() as f64 / turn.cpu_ns().max(1) as f64;
        }
    }
    shapes
}

/// Turns that end a transaction: by their shape, else by what they show.
fn ends(turns: &[RawTurn], shapes: &BTreeMap<(u64, u64), Tally>) -> Vec<Meaning> {
    let end = |turn: &RawTurn| {
        let seen = !turn.commits.is_empty();
        let like = shapes.get(&turn.shape).and_then(Tally::commits);
        let ends = if turn.served && turn.complete {
            like.unwrap_or(seen)
        } else {
            seen
        };
        Meaning {
            ends,
            ..Meaning::default()
        }
    };
    turns.iter().map(end).collect()
}

/// Adds commits that nothing shows, where transactions of the same statements mostly show one.
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
        if seen || !turn.served || signatures[&signature].commits() == Some(false) {
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

/// Whether the count of transactions says that every turn is one.
fn every_turn_counts(
    sessions: &[Vec<RawTurn>],
    all: &[Vec<Meaning>],
    expected: Option<f64>,
) -> bool {
    let Some(expected) = expected.filter(|&count| count > 0.0) else {
        return false;
    };
    let ends = all.iter().flatten().filter(|meaning| meaning.ends).count() as f64;
    let replies = sessions
        .iter()
        .flatten()
        .filter(|turn| turn.reply_ns.is_some());
    let off = |count: f64| (count.max(0.5) / expected).ln().abs();
    off(replies.count() as f64) + 0.1 < off(ends)
}
