//! Reads that sessions hand to I/O workers of their engine, such as PostgreSQL 18's.
//!
//! A session does not wait for a read that is complete before its use, so on fast storage the recording does
//! not show the dependency. Rule: a session uses its reads in the order in which they began. When the read
//! `n` places later begins, the session uses the first; `n` is the largest read-ahead distance that was seen
//! at a wait, at least 2.

use std::collections::BTreeMap;

use tierwise_recording::{Call, CallKind, ThreadClass};

use crate::constants::{IO_WORKER_LEAST_SHARE, WOKEN_NS};
use crate::rows::Rows;

/// Least read-ahead distance: one page is read while the previous page is processed.
const LEAST_AHEAD: usize = 2;

/// A session uses, from `needed_ns` on, the data that a worker had read by `done_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadDependency {
    pub(crate) helper: u32,
    pub(crate) done_ns: u64,
    pub(crate) session: u32,
    pub(crate) needed_ns: u64,
}

/// Dependencies of sessions on workers' reads for which no wait was recorded.
pub(crate) fn read_dependencies(rows: &Rows<'_>) -> Vec<ReadDependency> {
    let mut by_session: BTreeMap<u32, Vec<&Call>> = BTreeMap::new();
    for helper in rows.threads(ThreadClass::Background) {
        for (session, read) in reads(rows, helper) {
            by_session.entry(session).or_default().push(read);
        }
    }
    let reads = by_session.values().flatten();
    let read_ns: u64 = reads.map(|read| read.end_ns - read.start_ns).sum();
    let states = rows
        .threads(ThreadClass::Session)
        .flat_map(|session| rows.states(session));
    let sessions_ns: u64 = states.map(|state| state.end_ns - state.start_ns).sum();
    if (read_ns as f64) < IO_WORKER_LEAST_SHARE.get() * sessions_ns as f64 {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (session, mut reads) in by_session {
        reads.sort_unstable_by_key(|read| read.start_ns);
        let awaited = awaited(rows, session, &reads);
        let ahead = awaited.values().copied().fold(LEAST_AHEAD, usize::max);
        let last_ns = reads.iter().map(|read| read.end_ns).max().unwrap_or(0);
        for (index, read) in reads.iter().enumerate() {
            if awaited.contains_key(&index) {
                continue;
            }
            let next = reads.get(index + ahead);
            let used_ns = next.map_or(last_ns, |next| next.start_ns);
            found.push(ReadDependency {
                helper: read.thread,
                done_ns: read.end_ns,
                session,
                needed_ns: used_ns.max(read.end_ns),
            });
        }
    }
    found
}

/// The reads of a thread, each with the session that last woke the thread.
fn reads<'a>(rows: &Rows<'a>, helper: u32) -> Vec<(u32, &'a Call)> {
    let wakings = rows.waits(helper);
    let mut wakings = wakings
        .filter(|state| rows.class(state.waker) == Some(ThreadClass::Session))
        .peekable();
    let mut lender = None;
    let mut reads = Vec::new();
    for call in rows.calls(helper) {
        while let Some(state) = wakings.next_if(|state| state.end_ns <= call.start_ns) {
            lender = Some(state.waker);
        }
        let moves = call.kind == CallKind::Read && !call.failed && rows.role(call.file).is_some();
        reads.extend(lender.filter(|_| moves).map(|session| (session, call)));
    }
    reads
}

/// Reads that their session waited for, by index, and the number of reads begun from each on during that
/// wait.
fn awaited(rows: &Rows<'_>, session: u32, reads: &[&Call]) -> BTreeMap<usize, usize> {
    let waits = rows.waits(session);
    waits
        .filter_map(|state| {
            let begun = reads.partition_point(|read| read.start_ns < state.end_ns);
            let awaited = reads[..begun].iter().rposition(|read| {
                read.thread == state.waker
                    && read.end_ns <= state.end_ns + WOKEN_NS.get()
                    && read.end_ns + WOKEN_NS.get() >= state.end_ns
            })?;
            Some((awaited, begun - awaited))
        })
        .collect()
}
