//! Commits that show: own flushes of the log, waits for others' flushes and for a second copy, as one where they
//! belong together.

use tierwise_recording::{CallKind, Role};

use crate::flushes::LogFlushes;
use crate::pieces::{Piece, PieceKind};
use crate::view::{View, makes_durable};
use crate::wait::{Why, received, sent};

/// Between parts of one commit (woken, not covered, waiting once more or leading oneself) lies less time on a core
/// than this. Measured on PostgreSQL and MariaDB, quiet: 3 to 14 µs at the median, 99 µs at the 99th percentile and
/// 143 µs at most where cores idle between flushes of 8 ms.
const SAME_COMMIT_NS: u64 = 150_000;
/// Writes of one commit lie no further apart than this.
const WRITES_NS: u64 = 20_000;
/// Between a flush of the log and the wait for its second copy lies less than this, however many are let go on.
const BOTH_COPIES_NS: u64 = 100_000;

/// A commit that the recording shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SeenCommit {
    /// Piece at which it begins, counted from the turn's first.
    pub(crate) piece: u32,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
}

/// Commits that show: own flushes of the log, waits for others' flushes, or both together.
pub(crate) fn commits(view: &View<'_>, flushes: &LogFlushes, pieces: &[Piece]) -> Vec<SeenCommit> {
    let mut found: Vec<SeenCommit> = Vec::new();
    let mut written: Option<(usize, u64)> = None;
    let (mut cpu_ns, mut since_ns) = (0, 0);
    let mut own = false;
    for (index, piece) in pieces.iter().enumerate() {
        let (part, by_own) = match piece.kind {
            PieceKind::Cpu { .. } => {
                cpu_ns += piece.time_ns();
                since_ns += piece.time_ns();
                continue;
            }
            PieceKind::Ready => continue,
            PieceKind::Wait {
                why: Why::Member, ..
            } => {
                let own_before = (cpu_ns < BOTH_COPIES_NS)
                    .then(|| found.last_mut())
                    .flatten();
                match own_before {
                    Some(last) => last.end_ns = piece.end_ns,
                    None => found.push(SeenCommit {
                        piece: index as u32,
                        start_ns: piece.start_ns,
                        end_ns: piece.end_ns,
                    }),
                }
                (cpu_ns, own) = (0, true);
                continue;
            }
            PieceKind::Wait { why, .. } => {
                let queued =
                    (why == Why::LogQueue).then_some((index, piece.start_ns, piece.end_ns));
                (queued, false)
            }
            PieceKind::Call { call } => {
                let Some(call) = view.call(call) else {
                    continue;
                };
                // Whoever answered, or was asked, is done with the commit before.
                own |= received(call) || sent(call);
                let log = view.role(call.file) == Some(Role::Log) && !call.failed;
                if log && call.kind == CallKind::Write {
                    written = written.filter(|_| since_ns < WRITES_NS);
                    written = written.or(Some((index, call.start_ns)));
                    since_ns = 0;
                }
                let flush = log && flushes.has(call.thread, call.start_ns);
                let first = written.unwrap_or((index, call.start_ns));
                (flush.then_some((first.0, first.1, call.end_ns)), true)
            }
        };
        let Some((at, start_ns, end_ns)) = part else {
            continue;
        };
        match found.last_mut() {
            Some(last) if cpu_ns < SAME_COMMIT_NS && !own => last.end_ns = end_ns,
            _ => found.push(SeenCommit {
                piece: at as u32,
                start_ns,
                end_ns,
            }),
        }
        (cpu_ns, own, written) = (0, by_own && makes_own(view, piece), None);
    }
    found
}

/// Whether a flush was of the caller itself: what follows is another commit.
fn makes_own(view: &View<'_>, piece: &Piece) -> bool {
    let PieceKind::Call { call } = piece.kind else {
        return false;
    };
    view.call(call).is_some_and(makes_durable)
}
