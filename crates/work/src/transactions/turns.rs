//! A thread's segments cut into turns: at requests for a server's session, after commits for a library's caller.

use tierwise_recording::{Call, CallKind, Role, State, TransactionStatus};

use crate::CommitGrouping;
use crate::constants::{AT_ONCE_NS, EVEN_TURN_NS, WOKEN_NS};
use crate::engines::FlushSharing;
use crate::log::writes_log_header;
use crate::recording_rows::{RecordingRows, makes_durable};
use crate::recording_view::RecordingView;
use crate::timeline::{
    ThreadSegment, ThreadSegmentKind, WaitCause, segments_cpu_ns, split_segments_at,
};

/// Bytes received and sent: a turn as seen from outside.
pub(crate) type TurnShape = (u64, u64);

/// One turn before it becomes steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct RawTurn<'a> {
    pub(crate) thread: u32,
    pub(crate) burst: u32,
    pub(crate) segments: Vec<ThreadSegment<'a>>,
    pub(crate) shape: TurnShape,
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
    pub(crate) commits: Vec<VisibleCommit>,
    /// Whether a transaction ends with it.
    pub(crate) ends: bool,
    /// Time on the core after which it commits invisibly.
    pub(crate) hidden_commit_ns: Option<u64>,
    /// Locks it takes: index, and the time on the core before that.
    pub(crate) locks: Vec<(u16, u64)>,
}

impl<'a> RawTurn<'a> {
    pub(crate) fn start_ns(&self) -> u64 {
        self.segments.first().map_or(0, |segment| segment.start_ns)
    }

    pub(crate) fn end_ns(&self) -> u64 {
        self.segments.last().map_or(0, |segment| segment.end_ns)
    }

    pub(crate) fn cpu_ns(&self) -> u64 {
        segments_cpu_ns(&self.segments)
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &'a Call> {
        self.segments.iter().filter_map(ThreadSegment::call)
    }

    /// When the session began to wait for its client's next request.
    pub(crate) fn replied_ns(&self) -> u64 {
        let reply_ns = self.reply_ns.unwrap_or(u64::MAX);
        let mut after = self.segments.iter();
        let wait = after
            .find(|segment| segment.waits_for(WaitCause::Client) && segment.start_ns >= reply_ns);
        wait.map_or(self.end_ns(), |segment| segment.start_ns)
    }
}

/// Cuts of one burst's segments, with the data seen up to each.
pub(crate) fn cut_into_turns<'a>(
    view: &RecordingView<'a>,
    thread: u32,
    burst: u32,
    segments: Vec<ThreadSegment<'a>>,
) -> Vec<RawTurn<'a>> {
    let served = segments.iter().any(|segment| {
        let talks = |call| view.received(call) || view.sent(call);
        segment.waits_for(WaitCause::Client) || segment.call().is_some_and(talks)
    });
    let (segments, starts, even) = match served {
        true => {
            let starts = turn_starts_at_requests(view, &segments);
            (segments, starts, false)
        }
        false => turn_starts_after_commits(view, segments),
    };
    let mut firsts = vec![0];
    firsts.extend(starts);
    let ends = firsts[1..].iter().copied().chain([segments.len()]);
    let mut turns: Vec<RawTurn> = Vec::with_capacity(firsts.len());
    for (&first, end) in firsts.iter().zip(ends) {
        let mut turn = RawTurn {
            thread,
            burst,
            segments: segments[first..end].to_vec(),
            shape: (bytes_received_before(view, &segments, first), 0),
            served,
            even,
            ..RawTurn::default()
        };
        describe_turn(view, &mut turn);
        let is_last = turns.len() + 1 == firsts.len();
        turn.complete = first > 0 && (!is_last || (served && waits_for_request(&turn)));
        turns.push(turn);
    }
    for commit in visible_commits(view, &segments) {
        let turn = firsts.partition_point(|&first| first <= commit.segment as usize) - 1;
        turns[turn].commits.push(VisibleCommit {
            segment: commit.segment - firsts[turn] as u32,
            ..commit
        });
    }
    turns
}

/// Whether the reply was seen and only the client's time follows it.
fn waits_for_request(turn: &RawTurn<'_>) -> bool {
    let last = turn.segments.last();
    turn.reply_ns.is_some() && last.is_some_and(|segment| segment.waits_for(WaitCause::Client))
}

/// Number of segments that begin before an instant, of those from an index on.
fn segments_until(segments: &[ThreadSegment<'_>], from: usize, end_ns: u64) -> usize {
    let within = |segment: &&ThreadSegment| segment.start_ns < end_ns;
    segments[from..].iter().take_while(within).count()
}

/// Indexes of the segments with which turns begin: after the last wait before a request that follows a reply.
/// If the recording begins while the session waits for its client, that reply came earlier. Of requests that
/// arrived together, those after the end of a transaction are a turn of their own.
fn turn_starts_at_requests(rows: &RecordingRows<'_>, segments: &[ThreadSegment<'_>]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut times = segments.iter().filter(|segment| segment.time_ns() > 0);
    let mut replied = times
        .next()
        .is_some_and(|segment| segment.waits_for(WaitCause::Client));
    let mut waited = None;
    let mut ended = None;
    for (index, segment) in segments.iter().enumerate() {
        if segment.waits_for(WaitCause::Client) && replied {
            waited = Some(index + 1);
        }
        let Some(call) = segment.call() else {
            continue;
        };
        if rows.sent(call) {
            starts.extend(ended.take());
            let idle = call.transaction_status == Some(TransactionStatus::Idle);
            ended = idle.then(|| index + 1 + segments_until(segments, index + 1, call.end_ns));
            replied = true;
            waited = None;
        } else if rows.received(call) && replied {
            let inside = &segments[index..index + segments_until(segments, index, call.end_ns)];
            let blocked = inside
                .iter()
                .rposition(|segment| segment.waits_for(WaitCause::Client));
            let blocked = blocked.map(|ahead| index + ahead + 1);
            let start = blocked.or(waited).unwrap_or(index);
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
/// is none; and whether there is none. A caller continues with its next transaction without a wait, so its CPU burst is
/// cut where a commit ends.
fn turn_starts_after_commits<'a>(
    view: &RecordingView<'a>,
    segments: Vec<ThreadSegment<'a>>,
) -> (Vec<ThreadSegment<'a>>, Vec<usize>, bool) {
    let seen = visible_commits(view, &segments).into_iter();
    let mut ends: Vec<u64> = seen.map(|commit| commit.end_ns).collect();
    let calls = segments.iter().filter_map(ThreadSegment::call);
    ends.extend(calls.filter_map(|call| rollback_journal_end(view, call)));
    ends.sort_unstable();
    let segments = split_segments_at(segments, &ends);
    let even = ends.is_empty();
    let starts = segment_indexes_after(&segments, ends);
    (segments, starts, even)
}

/// Indexes of the first segments after some instants, sorted, or at even intervals where there are none.
fn segment_indexes_after(segments: &[ThreadSegment<'_>], ends: Vec<u64>) -> Vec<usize> {
    let even = ends.is_empty();
    let mut starts: Vec<usize> = Vec::new();
    let mut since_ns = segments.first().map_or(0, |first| first.start_ns);
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

/// The end of a transaction of an engine with a rollback journal: the journal is deleted or truncated to nothing.
fn rollback_journal_end(rows: &RecordingRows<'_>, call: &Call) -> Option<u64> {
    let journal = rows.role(call.file) == Some(Role::Doublewrite);
    let emptied = call.kind == CallKind::Resize && call.size_bytes == 0;
    (journal && emptied).then_some(call.end_ns)
}

/// Bytes received in a call that was under way when a turn began: it waited for the request.
fn bytes_received_before(
    rows: &RecordingRows<'_>,
    segments: &[ThreadSegment<'_>],
    first: usize,
) -> u64 {
    let call = segments[..first].iter().rev().find_map(ThreadSegment::call);
    let begins_ns = segments.get(first).map_or(u64::MAX, |next| next.start_ns);
    let under_way = |call: &&Call| rows.received(call) && call.end_ns > begins_ns;
    call.filter(under_way).map_or(0, |call| call.size_bytes)
}

/// The turn as seen from outside, besides bytes received in a call that began before.
fn describe_turn(rows: &RecordingRows<'_>, turn: &mut RawTurn<'_>) {
    for call in turn.segments.iter().filter_map(ThreadSegment::call) {
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

// Visible commits: own flushes of the log, waits for others' flushes and for a second copy, merged where
// they belong together.

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct VisibleCommit {
    /// Index of its first piece in the turn.
    pub(crate) segment: u32,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
}

/// Visible commits among a thread's segments: own flushes of the log, waits for others' flushes, or both together.
pub(crate) fn visible_commits(
    view: &RecordingView<'_>,
    segments: &[ThreadSegment<'_>],
) -> Vec<VisibleCommit> {
    let mut search = VisibleCommitSearch {
        view,
        found: Vec::new(),
        written: None,
        written_cpu_ns: 0,
        cpu_ns: 0,
        own: false,
    };
    for (index, segment) in (0..).zip(segments) {
        match segment.kind {
            ThreadSegmentKind::Ready => {}
            ThreadSegmentKind::Cpu { .. } => {
                search.cpu_ns += segment.time_ns();
                search.written_cpu_ns += segment.time_ns();
            }
            ThreadSegmentKind::Wait { cause, state } => search.wait(cause, state, index),
            ThreadSegmentKind::Call { call, .. } => search.call(call, index),
        }
    }
    search.found
}

struct VisibleCommitSearch<'a> {
    view: &'a RecordingView<'a>,
    found: Vec<VisibleCommit>,
    /// The first write to the log that no flush has followed: its segment and its start.
    written: Option<(u32, u64)>,
    /// Time on a core since the last write to the log, and since the last part of a commit.
    written_cpu_ns: u64,
    cpu_ns: u64,
    /// Whether the next part belongs to another commit.
    own: bool,
}

impl VisibleCommitSearch<'_> {
    fn wait(&mut self, cause: WaitCause, state: &State, segment: u32) {
        let seen = VisibleCommit {
            segment,
            start_ns: state.start_ns,
            end_ns: state.end_ns,
        };
        match cause {
            WaitCause::LogReplica => {
                self.add(seen, self.cpu_ns < WOKEN_NS.get());
                self.own = true;
            }
            WaitCause::LogQueue => self.part(seen, self.is_done(state)),
            _ => {}
        }
    }

    /// Whether a wait for a flush ended a commit: the leader of a write group takes the writers that wait
    /// when it starts, and a later one is woken to lead.
    fn is_done(&self, wait: &State) -> bool {
        let flush = self.view.flushes.that_woke(wait);
        self.view.engine.flush_sharing == FlushSharing::Always(CommitGrouping::WriteGroup)
            && flush.is_some_and(|flush| wait.start_ns < flush.start_ns)
    }

    fn call(&mut self, call: &Call, index: u32) {
        // A thread that sent a reply or received a request has finished the previous commit.
        self.own |= self.view.received(call) || self.view.sent(call);
        if self.view.role(call.file) != Some(Role::Log) || call.failed {
            return;
        }
        if call.kind == CallKind::Write && !writes_log_header(self.view, call) {
            let near = self.written_cpu_ns < AT_ONCE_NS.get();
            let before = self.written.filter(|_| near);
            self.written = before.or(Some((index, call.start_ns)));
            self.written_cpu_ns = 0;
        }
        if self.view.flushes.has(call) {
            let (segment, start_ns) = self.written.unwrap_or((index, call.start_ns));
            let seen = VisibleCommit {
                segment,
                start_ns,
                end_ns: call.end_ns,
            };
            // Anything after the caller's own flush belongs to another commit.
            self.part(seen, makes_durable(call));
        }
    }

    /// A flush, or a wait for one.
    fn part(&mut self, seen: VisibleCommit, own: bool) {
        self.add(seen, self.cpu_ns < WOKEN_NS.get() && !self.own);
        (self.own, self.written) = (own, None);
    }

    fn add(&mut self, seen: VisibleCommit, to_last: bool) {
        match self.found.last_mut().filter(|_| to_last) {
            Some(last) => last.end_ns = seen.end_ns,
            None => self.found.push(seen),
        }
        self.cpu_ns = 0;
    }
}
