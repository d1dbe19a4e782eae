//! Reads that sessions hand to I/O workers of their engine, such as PostgreSQL 18's.
//!
//! A session does not wait for a read that is complete before its use, so on fast storage the recording does
//! not show the dependency. Rule: a session uses its reads in the order in which they began. When the read
//! `n` places later begins, the session uses the first; `n` is the largest read-ahead distance that was seen
//! at a wait, at least 2.

use std::collections::BTreeMap;

use tierwise_recording::{CallKind, StateKind, ThreadClass};

use crate::constants::{IO_WORKER_LEAST_SHARE, WOKEN_NS};
use crate::index::view::View;

/// Least read-ahead distance: one page is read while the previous page is processed.
const LEAST_AHEAD: usize = 2;

/// One read by a worker.
#[derive(Clone, Copy, Debug)]
struct WorkerRead {
    helper: u32,
    start_ns: u64,
    end_ns: u64,
}

/// A session uses, from `needed_ns` on, the data that a worker had read by `done_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadDependency {
    pub(crate) helper: u32,
    pub(crate) done_ns: u64,
    pub(crate) session: u32,
    pub(crate) needed_ns: u64,
}

/// Dependencies of sessions on workers' reads for which no wait was recorded.
pub(crate) fn read_dependencies(view: &View<'_>) -> Vec<ReadDependency> {
    let mut by_session: BTreeMap<u32, Vec<WorkerRead>> = BTreeMap::new();
    for helper in view.threads(ThreadClass::Background) {
        for (session, read) in reads(view, helper) {
            by_session.entry(session).or_default().push(read);
        }
    }
    let read_ns: u64 = by_session.values().flatten().map(WorkerRead::time_ns).sum();
    if (read_ns as f64) < IO_WORKER_LEAST_SHARE.get() * sessions_ns(view) as f64 {
        return Vec::new();
    }
    let mut read_dependencies = Vec::new();
    for (session, mut reads) in by_session {
        reads.sort_unstable_by_key(|read| read.start_ns);
        let awaited = awaited(view, session, &reads);
        let ahead = awaited
            .values()
            .copied()
            .max()
            .unwrap_or(0)
            .max(LEAST_AHEAD);
        let last_ns = reads.iter().map(|read| read.end_ns).max().unwrap_or(0);
        for (index, read) in reads.iter().enumerate() {
            if awaited.contains_key(&index) {
                continue;
            }
            let next = reads.get(index + ahead);
            let used_ns = next.map_or(last_ns, |next| next.start_ns);
            read_dependencies.push(ReadDependency {
                helper: read.helper,
                done_ns: read.end_ns,
                session,
                needed_ns: used_ns.max(read.end_ns),
            });
        }
    }
    read_dependencies
}

impl WorkerRead {
    fn time_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}

/// The reads of a thread, each with the session that last woke the thread.
fn reads(view: &View<'_>, helper: u32) -> Vec<(u32, WorkerRead)> {
    let (_, calls) = view.calls(helper);
    let mut wakings = view
        .states(helper)
        .iter()
        .filter(|state| {
            state.kind == StateKind::Blocked
                && view.class(state.waker) == Some(ThreadClass::Session)
        })
        .peekable();
    let mut lender = None;
    let mut reads = Vec::new();
    for call in calls {
        while let Some(state) = wakings.next_if(|state| state.end_ns <= call.start_ns) {
            lender = Some(state.waker);
        }
        let moves = call.kind == CallKind::Read && !call.failed && view.role(call.file).is_some();
        if let (Some(session), true) = (lender, moves) {
            reads.push((
                session,
                WorkerRead {
                    helper,
                    start_ns: call.start_ns,
                    end_ns: call.end_ns,
                },
            ));
        }
    }
    reads
}

/// Reads that their session waited for, by index, and the number of reads begun from each on during that
/// wait.
fn awaited(view: &View<'_>, session: u32, reads: &[WorkerRead]) -> BTreeMap<usize, usize> {
    let waits = view
        .states(session)
        .iter()
        .filter(|state| state.kind == StateKind::Blocked);
    waits
        .filter_map(|state| {
            let begun = reads.partition_point(|read| read.start_ns < state.end_ns);
            let awaited = reads[..begun].iter().rposition(|read| {
                read.helper == state.waker
                    && read.end_ns <= state.end_ns + WOKEN_NS.get()
                    && read.end_ns + WOKEN_NS.get() >= state.end_ns
            })?;
            Some((awaited, begun - awaited))
        })
        .collect()
}

fn sessions_ns(view: &View<'_>) -> u64 {
    view.threads(ThreadClass::Session)
        .flat_map(|session| view.states(session))
        .map(|state| state.end_ns - state.start_ns)
        .sum()
}
