//! Visible commits: own flushes of the log, waits for others' flushes and for a second copy, merged where
//! they belong together.

use tierwise_recording::{Call, CallKind, Role, State};

use crate::Grouping;
use crate::constants::{BOTH_COPIES_NS, COMMIT_WRITES_NS, SAME_COMMIT_NS};
use crate::engines::FlushSharing;
use crate::index::calls::makes_durable;
use crate::index::rows::Rows;
use crate::log::flushes::LogFlushes;
use crate::log::wal_header::is_header;
use crate::timeline::segments::{Segment, SegmentKind};
use crate::timeline::wait::WaitCause;

/// A visible commit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SeenCommit {
    /// Index of its first piece in the turn.
    pub(crate) segment: u32,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
}

/// Visible commits of a thread: own flushes of the log, waits for others' flushes, or both together.
pub(crate) fn commits(
    rows: &Rows<'_>,
    flushes: &LogFlushes,
    thread: u32,
    segments: &[Segment],
) -> Vec<SeenCommit> {
    let mut search = CommitSearch {
        rows,
        flushes,
        states: rows.states(thread),
        found: Vec::new(),
        written: None,
        written_cpu_ns: 0,
        cpu_ns: 0,
        own: false,
    };
    for (index, segment) in (0..).zip(segments) {
        match segment.kind {
            SegmentKind::Ready => {}
            SegmentKind::Cpu { .. } => {
                search.cpu_ns += segment.time_ns();
                search.written_cpu_ns += segment.time_ns();
            }
            SegmentKind::Wait { cause, state } => {
                search.wait(cause, state, SeenCommit::of(index, segment));
            }
            SegmentKind::Call { call } => {
                if let Some(call) = rows.call(call) {
                    search.call(call, index);
                }
            }
        }
    }
    search.found
}

impl SeenCommit {
    fn of(index: u32, segment: &Segment) -> Self {
        Self {
            segment: index,
            start_ns: segment.start_ns,
            end_ns: segment.end_ns,
        }
    }
}

/// State of a search for commits.
struct CommitSearch<'a> {
    rows: &'a Rows<'a>,
    flushes: &'a LogFlushes,
    states: &'a [State],
    found: Vec<SeenCommit>,
    /// The first write to the log that no flush has followed: its segment and its start.
    written: Option<(u32, u64)>,
    /// Time on a core since the last write to the log, and since the last part of a commit.
    written_cpu_ns: u64,
    cpu_ns: u64,
    /// Whether the next part belongs to another commit.
    own: bool,
}

impl CommitSearch<'_> {
    fn wait(&mut self, cause: WaitCause, state: u32, seen: SeenCommit) {
        match cause {
            WaitCause::LogReplica => {
                self.add(seen, self.cpu_ns < BOTH_COPIES_NS.get());
                self.own = true;
            }
            WaitCause::LogQueue => self.part(seen, self.is_done(state)),
            _ => {}
        }
    }

    /// Whether a wait for a flush ended a commit: the leader of a write group takes the writers that wait
    /// when it starts, and a later one is woken to lead.
    fn is_done(&self, state: u32) -> bool {
        if self.rows.engine.flush_sharing != FlushSharing::Always(Grouping::WriteGroup) {
            return false;
        }
        let wait = &self.states[state as usize];
        let flush = self
            .flushes
            .that_woke(wait.waker, wait.start_ns, wait.end_ns);
        flush.is_some_and(|flush| wait.start_ns < flush.start_ns)
    }

    fn call(&mut self, call: &Call, index: u32) {
        // A thread that sent a reply or received a request has finished the previous commit.
        self.own |= self.rows.received(call) || self.rows.sent(call);
        if self.rows.role(call.file) != Some(Role::Log) || call.failed {
            return;
        }
        if call.kind == CallKind::Write && !is_header(self.rows, call) {
            let near = self.written_cpu_ns < COMMIT_WRITES_NS.get();
            let before = self.written.filter(|_| near);
            self.written = before.or(Some((index, call.start_ns)));
            self.written_cpu_ns = 0;
        }
        if self.flushes.has(call.thread, call.start_ns) {
            let (segment, start_ns) = self.written.unwrap_or((index, call.start_ns));
            let seen = SeenCommit {
                segment,
                start_ns,
                end_ns: call.end_ns,
            };
            // Anything after the caller's own flush belongs to another commit.
            self.part(seen, makes_durable(call));
        }
    }

    /// A flush, or a wait for one.
    fn part(&mut self, seen: SeenCommit, own: bool) {
        self.add(seen, self.cpu_ns < SAME_COMMIT_NS.get() && !self.own);
        (self.own, self.written) = (own, None);
    }

    fn add(&mut self, seen: SeenCommit, to_last: bool) {
        match self.found.last_mut().filter(|_| to_last) {
            Some(last) => last.end_ns = seen.end_ns,
            None => self.found.push(seen),
        }
        self.cpu_ns = 0;
    }
}
