//! A thread's pieces cut into turns: at requests for a server's session, after commits for a library's caller.

use tierwise_recording::{Call, CallKind, Role, TransactionStatus};

use crate::commits::{SeenCommit, commits};
use crate::flushes::LogFlushes;
use crate::pieces::{Piece, PieceKind, cut_at};
use crate::view::View;
use crate::wait::{Why, received, sent};

/// Without requests and commits, a turn is cut after this time.
const EVEN_NS: u64 = 10_000_000;

/// One turn before it becomes steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct RawTurn {
    pub(crate) thread: u32,
    pub(crate) burst: u32,
    pub(crate) pieces: Vec<Piece>,
    /// Bytes received and sent: what the turn looks like from outside.
    pub(crate) shape: (u64, u64),
    /// What the last reply says of the session's transaction; none if it was not looked at.
    pub(crate) status: Option<TransactionStatus>,
    /// When the reply was handed over.
    pub(crate) reply_ns: Option<u64>,
    /// Whether both its ends lie in the burst, or its client was awaited when the burst ended.
    pub(crate) complete: bool,
    /// Whether it was cut at requests.
    pub(crate) served: bool,
    pub(crate) commits: Vec<SeenCommit>,
}

impl RawTurn {
    pub(crate) fn start_ns(&self) -> u64 {
        self.pieces.first().map_or(0, |piece| piece.start_ns)
    }

    pub(crate) fn end_ns(&self) -> u64 {
        self.pieces.last().map_or(0, |piece| piece.end_ns)
    }

    /// Time on a core.
    pub(crate) fn cpu_ns(&self) -> u64 {
        let on_core = |piece: &&Piece| matches!(piece.kind, PieceKind::Cpu { .. });
        self.pieces.iter().filter(on_core).map(Piece::time_ns).sum()
    }
}

/// Where the pieces of one burst are cut, with what was seen up to there.
pub(crate) fn cut(
    view: &View<'_>,
    flushes: &LogFlushes,
    thread: u32,
    burst: u32,
    pieces: Vec<Piece>,
) -> Vec<RawTurn> {
    let talks = |piece: &Piece| {
        let PieceKind::Call { call } = piece.kind else {
            return false;
        };
        view.call(call)
            .is_some_and(|call| received(call) || sent(call))
    };
    let served = pieces.iter().any(talks) || pieces.iter().any(|p| waits(p, Why::Client));
    let (pieces, starts) = if served {
        let starts = at_requests(view, &pieces);
        (pieces, starts)
    } else {
        after_commits(view, flushes, pieces)
    };
    let commits = commits(view, flushes, &pieces);
    let asked = (starts.iter()).map(|&start| received_in(view, &pieces, start));
    let mut asked: Vec<u64> = asked.collect();
    asked.insert(0, 0);
    let mut turns = split(pieces, &starts);
    let last = turns.len() - 1;
    for ((number, turn), asked) in turns.iter_mut().enumerate().zip(asked) {
        turn.shape.0 = asked;
        turn.thread = thread;
        turn.burst = burst;
        turn.served = served;
        describe(view, turn);
        let ends = number < last || (served && waits_for_request(turn));
        turn.complete = number > 0 && ends;
    }
    deal(&mut turns, &starts, commits);
    turns
}

/// Whether the reply was seen and nothing after it but the client's time.
fn waits_for_request(turn: &RawTurn) -> bool {
    let last = turn.pieces.last();
    turn.reply_ns.is_some() && last.is_some_and(|piece| waits(piece, Why::Client))
}

/// Index of the first piece after a call that begins with one; the next call's at the latest.
fn after_call(pieces: &[Piece], index: usize, end_ns: u64) -> usize {
    let within = |piece: &&Piece| piece.start_ns < end_ns;
    index + 1 + pieces[index + 1..].iter().take_while(within).count()
}

fn waits(piece: &Piece, for_what: Why) -> bool {
    matches!(piece.kind, PieceKind::Wait { why, .. } if why == for_what)
}

/// Indexes of the pieces with which turns begin: after the last wait before a request that follows a reply, which
/// was given before the recording began where that finds the session waiting for its client. Of requests that came
/// together, those that follow the end of a transaction are a turn of their own.
fn at_requests(view: &View<'_>, pieces: &[Piece]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut times = pieces.iter().filter(|piece| piece.time_ns() > 0);
    let mut replied = times.next().is_some_and(|piece| waits(piece, Why::Client));
    let mut waited = None;
    let mut ended = None;
    for (index, piece) in pieces.iter().enumerate() {
        if waits(piece, Why::Client) && replied {
            waited = Some(index + 1);
        }
        let PieceKind::Call { call } = piece.kind else {
            continue;
        };
        let Some(call) = view.call(call) else {
            continue;
        };
        if sent(call) {
            starts.extend(ended.take());
            let idle = call.transaction_status == Some(TransactionStatus::Idle);
            ended = idle.then(|| after_call(pieces, index, call.end_ns));
            replied = true;
            waited = None;
        } else if received(call) && replied {
            let inside = pieces[index..]
                .iter()
                .take_while(|p| p.start_ns < call.end_ns);
            let blocked = inside
                .enumerate()
                .filter(|(_, p)| waits(p, Why::Client))
                .last();
            let start = blocked
                .map(|(ahead, _)| index + ahead + 1)
                .or(waited)
                .unwrap_or(index);
            if start > 0 && starts.last() != Some(&start) {
                starts.push(start);
            }
            replied = false;
            ended = None;
            waited = None;
        }
    }
    starts
}

/// The pieces, and indexes of those with which turns begin: after each commit, or now and then where there is none. A
/// caller goes on with its next transaction without a wait, so what it runs is cut where a commit ends.
fn after_commits(
    view: &View<'_>,
    flushes: &LogFlushes,
    pieces: Vec<Piece>,
) -> (Vec<Piece>, Vec<usize>) {
    let seen = commits(view, flushes, &pieces);
    let mut ends: Vec<u64> = seen.iter().map(|commit| commit.end_ns).collect();
    ends.extend(journal_ends(view, &pieces));
    ends.sort_unstable();
    let pieces = cut_at(pieces, &ends);
    let starts = after(&pieces, ends);
    (pieces, starts)
}

/// Indexes of the first pieces after some instants, sorted, or at even distances where there are none.
fn after(pieces: &[Piece], ends: Vec<u64>) -> Vec<usize> {
    let even = ends.is_empty();
    let Some(first) = pieces.first() else {
        return Vec::new();
    };
    let mut starts: Vec<usize> = Vec::new();
    let mut since_ns = first.start_ns;
    let mut ends = ends.into_iter().peekable();
    for (index, piece) in pieces.iter().enumerate().skip(1) {
        let mut due = even && piece.start_ns > since_ns + EVEN_NS;
        while ends.next_if(|&end| end <= piece.start_ns).is_some() {
            due = true;
        }
        if due {
            starts.push(index);
            since_ns = piece.start_ns;
        }
    }
    starts
}

/// Ends of transactions of an engine with a rollback journal: it is deleted or cut to nothing.
fn journal_ends(view: &View<'_>, pieces: &[Piece]) -> Vec<u64> {
    let ended = |piece: &Piece| {
        let PieceKind::Call { call } = piece.kind else {
            return None;
        };
        let call = view.call(call)?;
        let journal = view.role(call.file) == Some(Role::Doublewrite);
        let emptied = call.kind == CallKind::Resize && call.size_bytes == 0;
        (journal && emptied).then_some(call.end_ns)
    };
    pieces.iter().filter_map(ended).collect()
}

fn split(pieces: Vec<Piece>, starts: &[usize]) -> Vec<RawTurn> {
    let mut turns = Vec::with_capacity(starts.len() + 1);
    let mut pieces = pieces.into_iter();
    let mut before = 0;
    for &start in starts {
        let pieces: Vec<Piece> = pieces.by_ref().take(start - before).collect();
        turns.push(RawTurn {
            pieces,
            ..RawTurn::default()
        });
        before = start;
    }
    turns.push(RawTurn {
        pieces: pieces.collect(),
        ..RawTurn::default()
    });
    turns
}

/// Hands each commit to its turn.
fn deal(turns: &mut [RawTurn], starts: &[usize], commits: Vec<SeenCommit>) {
    for mut commit in commits {
        let turn = starts.partition_point(|&start| start <= commit.piece as usize);
        if turn > 0 {
            commit.piece -= starts[turn - 1] as u32;
        }
        turns[turn].commits.push(commit);
    }
}

/// Bytes that were received in a call which was under way when a turn began: it waited for the request.
fn received_in(view: &View<'_>, pieces: &[Piece], start: usize) -> u64 {
    let mut before = pieces[..start].iter().rev();
    let call = before.find_map(|piece| match piece.kind {
        PieceKind::Call { call } => view.call(call),
        _ => None,
    });
    let begins_ns = pieces.get(start).map_or(u64::MAX, |piece| piece.start_ns);
    let under_way = |call: &&Call| received(call) && call.end_ns > begins_ns;
    call.filter(under_way).map_or(0, |call| call.size_bytes)
}

/// What the turn looks like from outside, beside what was received in a call that began before.
fn describe(view: &View<'_>, turn: &mut RawTurn) {
    for piece in &turn.pieces {
        let PieceKind::Call { call } = piece.kind else {
            continue;
        };
        let Some(call) = view.call(call) else {
            continue;
        };
        if received(call) && turn.reply_ns.is_none() {
            turn.shape.0 += call.size_bytes;
        } else if sent(call) {
            turn.shape.1 += call.size_bytes;
            turn.status = call.transaction_status;
            turn.reply_ns = Some(call.end_ns);
        }
    }
}
