//! Visible commits: own flushes of the log, waits for others' flushes and for a second copy, merged where
//! they belong together.

use tierwise_recording::{Call, CallKind, Role, State};

use crate::Grouping;
use crate::constants::{BOTH_COPIES_NS, COMMIT_WRITES_NS, SAME_COMMIT_NS};
use crate::engines::FlushSharing;
use crate::log::flushes::is_header;
use crate::rows::makes_durable;
use crate::timeline::segments::{Segment, SegmentKind};
use crate::timeline::wait::WaitCause;
use crate::view::View;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SeenCommit {
    /// Index of its first piece in the turn.
    pub(crate) segment: u32,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
}

/// Visible commits among a thread's segments: own flushes of the log, waits for others' flushes, or both together.
pub(crate) fn commits(view: &View<'_>, segments: &[Segment<'_>]) -> Vec<SeenCommit> {
    let mut search = CommitSearch {
        view,
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
            SegmentKind::Wait { cause, state } => search.wait(cause, state, index),
            SegmentKind::Call { call, .. } => search.call(call, index),
        }
    }
    search.found
}

struct CommitSearch<'a> {
    view: &'a View<'a>,
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
    fn wait(&mut self, cause: WaitCause, state: &State, segment: u32) {
        let seen = SeenCommit {
            segment,
            start_ns: state.start_ns,
            end_ns: state.end_ns,
        };
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
    fn is_done(&self, wait: &State) -> bool {
        let flush = self.view.flushes.that_woke(wait);
        self.view.engine.flush_sharing == FlushSharing::Always(Grouping::WriteGroup)
            && flush.is_some_and(|flush| wait.start_ns < flush.start_ns)
    }

    fn call(&mut self, call: &Call, index: u32) {
        // A thread that sent a reply or received a request has finished the previous commit.
        self.own |= self.view.received(call) || self.view.sent(call);
        if self.view.role(call.file) != Some(Role::Log) || call.failed {
            return;
        }
        if call.kind == CallKind::Write && !is_header(self.view, call) {
            let near = self.written_cpu_ns < COMMIT_WRITES_NS.get();
            let before = self.written.filter(|_| near);
            self.written = before.or(Some((index, call.start_ns)));
            self.written_cpu_ns = 0;
        }
        if self.view.flushes.has(call) {
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
