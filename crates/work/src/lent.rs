//! Reads that sessions lend to threads of their own engine, such as PostgreSQL 18's I/O workers.
//!
//! A session that finds such a read done does not wait, so on fast storage nothing in the recording says that it needs
//! it. Rule: reads of a session are used in the order in which they were begun, and when the next but some is begun
//! (as many as were seen ahead of one that was waited for, at least 2) the session has what the first brought.

use std::collections::BTreeMap;

use tierwise_recording::{CallKind, StateKind, ThreadClass};

use crate::view::View;
use crate::wait::WOKEN_NS;

/// Threads whose reads take less than this share of the sessions' time are left alone.
const LEAST_SHARE: f64 = 0.01;
/// Reads that are begun ahead at least: what is read while the page before is worked on.
const LEAST_AHEAD: usize = 2;

/// One read by a helper.
#[derive(Clone, Copy, Debug)]
struct Read {
    helper: u32,
    start_ns: u64,
    end_ns: u64,
}

/// That a session needs, from an instant on, what a helper had read by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) helper: u32,
    pub(crate) done_ns: u64,
    pub(crate) session: u32,
    pub(crate) needed_ns: u64,
}

/// What sessions need of what helpers read, that they were not seen to wait for.
pub(crate) fn needs(view: &View<'_>) -> Vec<Need> {
    let mut lent: BTreeMap<u32, Vec<Read>> = BTreeMap::new();
    for helper in view.threads(ThreadClass::Background) {
        for (session, read) in reads(view, helper) {
            lent.entry(session).or_default().push(read);
        }
    }
    let read_ns: u64 = lent.values().flatten().map(Read::time_ns).sum();
    if (read_ns as f64) < LEAST_SHARE * sessions_ns(view) as f64 {
        return Vec::new();
    }
    let mut needs = Vec::new();
    for (session, mut reads) in lent {
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
            needs.push(Need {
                helper: read.helper,
                done_ns: read.end_ns,
                session,
                needed_ns: used_ns.max(read.end_ns),
            });
        }
    }
    needs
}

impl Read {
    fn time_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}

/// The reads of a thread, each with the session that woke the thread last.
fn reads(view: &View<'_>, helper: u32) -> Vec<(u32, Read)> {
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
                Read {
                    helper,
                    start_ns: call.start_ns,
                    end_ns: call.end_ns,
                },
            ));
        }
    }
    reads
}

/// Reads that their session waited for, by index, and how many were begun from each on while it did.
fn awaited(view: &View<'_>, session: u32, reads: &[Read]) -> BTreeMap<usize, usize> {
    let waits = view
        .states(session)
        .iter()
        .filter(|state| state.kind == StateKind::Blocked);
    waits
        .filter_map(|state| {
            let begun = reads.partition_point(|read| read.start_ns < state.end_ns);
            let awaited = reads[..begun].iter().rposition(|read| {
                read.helper == state.waker
                    && read.end_ns <= state.end_ns + WOKEN_NS
                    && read.end_ns + WOKEN_NS >= state.end_ns
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
