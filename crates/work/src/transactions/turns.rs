//! A thread's segments cut into turns: at requests for a server's session, after commits for a library's caller.

use tierwise_recording::{Call, CallKind, Role, TransactionStatus};

use crate::constants::EVEN_TURN_NS;
use crate::index::rows::Rows;
use crate::log::flushes::LogFlushes;
use crate::timeline::segments::{Segment, SegmentKind, split_at};
use crate::timeline::wait::WaitCause;
use crate::transactions::commits::{SeenCommit, commits};

/// One turn before it becomes steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct RawTurn {
    pub(crate) thread: u32,
    pub(crate) burst: u32,
    pub(crate) segments: Vec<Segment>,
    /// Bytes received and sent: the turn as seen from outside.
    pub(crate) shape: (u64, u64),
    /// Transaction status in the last reply; none if the reply was not examined.
    pub(crate) status: Option<TransactionStatus>,
    /// When the reply was sent.
    pub(crate) reply_ns: Option<u64>,
    /// Whether both its ends lie in the burst, or it awaited its client when the burst ended.
    pub(crate) complete: bool,
    /// Whether it was cut at requests.
    pub(crate) served: bool,
    /// Whether it ran no statement.
    pub(crate) ping: bool,
    /// Whether it was cut at an even interval, as there were neither requests nor commits.
    pub(crate) even: bool,
    pub(crate) commits: Vec<SeenCommit>,
}

impl RawTurn {
    pub(crate) fn start_ns(&self) -> u64 {
        self.segments.first().map_or(0, |segment| segment.start_ns)
    }

    pub(crate) fn end_ns(&self) -> u64 {
        self.segments.last().map_or(0, |segment| segment.end_ns)
    }

    /// Time on a core.
    pub(crate) fn cpu_ns(&self) -> u64 {
        let on_core = |segment: &&Segment| matches!(segment.kind, SegmentKind::Cpu { .. });
        self.segments
            .iter()
            .filter(on_core)
            .map(Segment::time_ns)
            .sum()
    }
}

/// Cuts of one burst's segments, with the data seen up to each.
pub(crate) fn turns_of(
    rows: &Rows<'_>,
    flushes: &LogFlushes,
    thread: u32,
    burst: u32,
    segments: Vec<Segment>,
) -> Vec<RawTurn> {
    let talks = |segment: &Segment| {
        let SegmentKind::Call { call } = segment.kind else {
            return false;
        };
        rows.call(call)
            .is_some_and(|call| rows.received(call) || rows.sent(call))
    };
    let served =
        segments.iter().any(talks) || segments.iter().any(|p| waits_for(p, WaitCause::Client));
    let (segments, starts, even) = if served {
        let starts = at_requests(rows, &segments);
        (segments, starts, false)
    } else {
        after_commits(rows, flushes, thread, segments)
    };
    let commits = commits(rows, flushes, thread, &segments);
    let asked = (starts.iter()).map(|&start| received_in(rows, &segments, start));
    let mut asked: Vec<u64> = asked.collect();
    asked.insert(0, 0);
    let mut turns = split(segments, &starts);
    let last = turns.len() - 1;
    for ((number, turn), asked) in turns.iter_mut().enumerate().zip(asked) {
        turn.shape.0 = asked;
        turn.thread = thread;
        turn.burst = burst;
        turn.served = served;
        turn.even = even;
        describe(rows, turn);
        let ends = number < last || (served && waits_for_request(turn));
        turn.complete = number > 0 && ends;
    }
    deal(&mut turns, &starts, commits);
    turns
}

/// Whether the reply was seen and only the client's time follows it.
fn waits_for_request(turn: &RawTurn) -> bool {
    let last = turn.segments.last();
    turn.reply_ns.is_some() && last.is_some_and(|segment| waits_for(segment, WaitCause::Client))
}

/// Index of the first segment after the call that begins with a segment; at the latest, the next call's.
fn after_call(segments: &[Segment], index: usize, end_ns: u64) -> usize {
    let within = |segment: &&Segment| segment.start_ns < end_ns;
    index + 1 + segments[index + 1..].iter().take_while(within).count()
}

/// Whether a segment is a wait of this cause.
pub(crate) fn waits_for(segment: &Segment, for_what: WaitCause) -> bool {
    matches!(segment.kind, SegmentKind::Wait { cause, .. } if cause == for_what)
}

/// Indexes of the segments with which turns begin: after the last wait before a request that follows a reply.
/// If the recording begins while the session waits for its client, that reply came earlier. Of requests that
/// arrived together, those after the end of a transaction are a turn of their own.
fn at_requests(rows: &Rows<'_>, segments: &[Segment]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut times = segments.iter().filter(|segment| segment.time_ns() > 0);
    let mut replied = times
        .next()
        .is_some_and(|segment| waits_for(segment, WaitCause::Client));
    let mut waited = None;
    let mut ended = None;
    for (index, segment) in segments.iter().enumerate() {
        if waits_for(segment, WaitCause::Client) && replied {
            waited = Some(index + 1);
        }
        let SegmentKind::Call { call } = segment.kind else {
            continue;
        };
        let Some(call) = rows.call(call) else {
            continue;
        };
        if rows.sent(call) {
            starts.extend(ended.take());
            let idle = call.transaction_status == Some(TransactionStatus::Idle);
            ended = idle.then(|| after_call(segments, index, call.end_ns));
            replied = true;
            waited = None;
        } else if rows.received(call) && replied {
            let inside = segments[index..]
                .iter()
                .take_while(|p| p.start_ns < call.end_ns);
            let blocked = inside
                .enumerate()
                .filter(|(_, p)| waits_for(p, WaitCause::Client))
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

/// The segments, and indexes of those with which turns begin: after each commit, or at intervals where there
/// is none; and whether there is none. A caller continues with its next transaction without a wait, so its CPU burst is cut where a
/// commit ends.
fn after_commits(
    rows: &Rows<'_>,
    flushes: &LogFlushes,
    thread: u32,
    segments: Vec<Segment>,
) -> (Vec<Segment>, Vec<usize>, bool) {
    let seen = commits(rows, flushes, thread, &segments);
    let mut ends: Vec<u64> = seen.iter().map(|commit| commit.end_ns).collect();
    ends.extend(journal_ends(rows, &segments));
    ends.sort_unstable();
    let segments = split_at(segments, &ends);
    let even = ends.is_empty();
    let starts = after(&segments, ends);
    (segments, starts, even)
}

/// Indexes of the first segments after some instants, sorted, or at even intervals where there are none.
fn after(segments: &[Segment], ends: Vec<u64>) -> Vec<usize> {
    let even = ends.is_empty();
    let Some(first) = segments.first() else {
        return Vec::new();
    };
    let mut starts: Vec<usize> = Vec::new();
    let mut since_ns = first.start_ns;
    let mut ends = ends.into_iter().peekable();
    for (index, segment) in segments.iter().enumerate().skip(1) {
        let mut due = even && segment.start_ns > since_ns + EVEN_TURN_NS.get();
        while ends.next_if(|&end| end <= segment.start_ns).is_some() {
            due = true;
        }
        if due {
            starts.push(index);
            since_ns = segment.start_ns;
        }
    }
    starts
}

/// Ends of transactions of an engine with a rollback journal: the journal is deleted or truncated to nothing.
fn journal_ends(rows: &Rows<'_>, segments: &[Segment]) -> Vec<u64> {
    let ended = |segment: &Segment| {
        let SegmentKind::Call { call } = segment.kind else {
            return None;
        };
        let call = rows.call(call)?;
        let journal = rows.role(call.file) == Some(Role::Doublewrite);
        let emptied = call.kind == CallKind::Resize && call.size_bytes == 0;
        (journal && emptied).then_some(call.end_ns)
    };
    segments.iter().filter_map(ended).collect()
}

fn split(segments: Vec<Segment>, starts: &[usize]) -> Vec<RawTurn> {
    let mut turns = Vec::with_capacity(starts.len() + 1);
    let mut segments = segments.into_iter();
    let mut before = 0;
    for &start in starts {
        let segments: Vec<Segment> = segments.by_ref().take(start - before).collect();
        turns.push(RawTurn {
            segments,
            ..RawTurn::default()
        });
        before = start;
    }
    turns.push(RawTurn {
        segments: segments.collect(),
        ..RawTurn::default()
    });
    turns
}

/// Assigns each commit to its turn.
fn deal(turns: &mut [RawTurn], starts: &[usize], commits: Vec<SeenCommit>) {
    for mut commit in commits {
        let turn = starts.partition_point(|&start| start <= commit.segment as usize);
        if turn > 0 {
            commit.segment -= starts[turn - 1] as u32;
        }
        turns[turn].commits.push(commit);
    }
}

/// Bytes received in a call that was under way when a turn began: it waited for the request.
fn received_in(rows: &Rows<'_>, segments: &[Segment], start: usize) -> u64 {
    let mut before = segments[..start].iter().rev();
    let call = before.find_map(|segment| match segment.kind {
        SegmentKind::Call { call } => rows.call(call),
        _ => None,
    });
    let begins_ns = segments
        .get(start)
        .map_or(u64::MAX, |segment| segment.start_ns);
    let under_way = |call: &&Call| rows.received(call) && call.end_ns > begins_ns;
    call.filter(under_way).map_or(0, |call| call.size_bytes)
}

/// The turn as seen from outside, besides bytes received in a call that began before.
fn describe(rows: &Rows<'_>, turn: &mut RawTurn) {
    for segment in &turn.segments {
        let SegmentKind::Call { call } = segment.kind else {
            continue;
        };
        let Some(call) = rows.call(call) else {
            continue;
        };
        if rows.received(call) && turn.reply_ns.is_none() {
            turn.shape.0 += call.size_bytes;
        } else if rows.sent(call) {
            turn.shape.1 += call.size_bytes;
            turn.status = call.transaction_status;
            turn.reply_ns = Some(call.end_ns);
        }
    }
    turn.ping = rows.engine.is_ping(turn.shape);
}
