//! When work that is done once began and ended: a server's session may have been idle before and after its job.

use crate::timeline::segments::{Segment, SegmentKind};
use crate::timeline::wait::WaitCause;
use crate::transactions::turns::RawTurn;

/// Work with at least this many transactions counts as steady, else as done once.
pub const STEADY_TRANSACTIONS: usize = 40;

/// First and last instant at which a session did more than wait for its client; none if none did.
pub(crate) fn active_span(sessions: &[Vec<RawTurn>]) -> Option<(u64, u64)> {
    let turns = sessions.iter().flatten();
    let active = turns
        .flat_map(|turn| &turn.segments)
        .filter(|segment| !is_idle(segment));
    active.fold(None, |span: Option<(u64, u64)>, segment| {
        let (first, last) = span.unwrap_or((u64::MAX, 0));
        Some((first.min(segment.start_ns), last.max(segment.end_ns)))
    })
}

/// Leaves out the waits for clients before and after that span, and turns that had nothing else.
pub(crate) fn trim(sessions: &mut [Vec<RawTurn>], (first_ns, last_ns): (u64, u64)) {
    for turns in sessions {
        for turn in turns.iter_mut() {
            let early = |segment: &&Segment| is_idle(segment) && segment.end_ns <= first_ns;
            let late = |segment: &&Segment| is_idle(segment) && segment.start_ns >= last_ns;
            let before = turn.segments.iter().take_while(early).count();
            let after = turn.segments[before..]
                .iter()
                .rev()
                .take_while(late)
                .count();
            turn.segments.truncate(turn.segments.len() - after);
            turn.segments.drain(..before);
            for commit in &mut turn.commits {
                commit.segment = commit.segment.saturating_sub(before as u32);
            }
        }
        turns.retain(|turn| !turn.segments.is_empty());
    }
}

/// The part of the bursts within a span.
pub(crate) fn within_bursts(
    bursts: &[tierwise_recording::Burst],
    (first_ns, last_ns): (u64, u64),
) -> u64 {
    let part = |burst: &tierwise_recording::Burst| {
        let (from, to) = (burst.start_ns.max(first_ns), burst.end_ns.min(last_ns));
        to.saturating_sub(from)
    };
    bursts.iter().map(part).sum()
}

fn is_idle(segment: &Segment) -> bool {
    let waits =
        |cause| matches!(segment.kind, SegmentKind::Wait { cause: found, .. } if found == cause);
    waits(WaitCause::Client)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transactions::commits::SeenCommit;

    fn segment(start_ns: u64, end_ns: u64, cause: Option<WaitCause>) -> Segment {
        let kind = match cause {
            Some(cause) => SegmentKind::Wait { cause, state: 0 },
            None => SegmentKind::Cpu {
                after_wait_ns: 0,
                cold: 0.0,
            },
        };
        Segment {
            start_ns,
            end_ns,
            kind,
        }
    }

    #[test]
    fn idle_time_around_a_job_is_left_out() {
        let turn = |segments: Vec<Segment>, commits| RawTurn {
            segments,
            commits,
            ..RawTurn::default()
        };
        let client = Some(WaitCause::Client);
        let commit = SeenCommit {
            segment: 2,
            start_ns: 14,
            end_ns: 16,
        };
        let mut sessions = vec![vec![
            turn(vec![segment(0, 8, client)], vec![]),
            turn(
                vec![
                    segment(8, 10, client),
                    segment(10, 14, None),
                    segment(14, 16, Some(WaitCause::LogDevice)),
                    segment(16, 90, client),
                ],
                vec![commit],
            ),
        ]];
        let span = active_span(&sessions).unwrap();
        assert_eq!(span, (10, 16));
        trim(&mut sessions, span);
        assert_eq!(sessions[0].len(), 1);
        let left = &sessions[0][0];
        assert_eq!((left.segments.len(), left.commits[0].segment), (2, 1));
        assert_eq!(active_span(&[vec![]]), None);
    }
}
