//! Turns, commits, sessions, locks: requests of clients, and dependencies between sessions.
//!
//! Nothing here writes steps.

pub(crate) mod boundaries;
pub(crate) mod hot_locks;
pub(crate) mod observed;
pub(crate) mod sessions;
pub(crate) mod turns;

use std::collections::{BTreeMap, BTreeSet};

use tierwise_recording::{Call, CallKind, State, StateKind, ThreadClass};

use crate::constants::{AT_ONCE_NS, FEW_SHARE, LEAST_TIME_SHARE, WOKEN_NS};
use crate::recording_rows::RecordingRows;
use crate::recording_view::RecordingView;
use crate::timeline::{WaitCause, wait_cause};
use crate::{DisabledMechanisms, Mechanism, Step};

// Dependencies between threads of the engine, as signals and awaits.

/// Least read-ahead distance of I/O workers: one page is read while the previous page is processed.
const LEAST_AHEAD: usize = 2;

/// All dependencies between threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadDependencies {
    /// Of each thread: instant and number of its signals and awaits; whether it awaits the signal.
    marks: BTreeMap<u32, Vec<(u64, bool, u32)>>,
    /// The signal that a wait is for, by the wait's thread, start and end.
    awaited: BTreeMap<(u32, u64, u64), u32>,
    helpers: BTreeSet<u32>,
}

impl ThreadDependencies {
    pub(crate) fn new(view: &RecordingView<'_>, disabled: DisabledMechanisms) -> Self {
        if disabled.has(Mechanism::ThreadDependencies) {
            return Self::default();
        }
        let reads = match disabled.has(Mechanism::IoWorkers) {
            true => Vec::new(),
            false => read_dependencies(view),
        };
        let mut found = Self {
            helpers: helper_threads(view),
            ..Self::default()
        };
        found.helpers.extend(reads.iter().map(|read| read.helper));
        let sessions = view.threads(ThreadClass::Session);
        let waiters: Vec<u32> = sessions.chain(found.helpers.iter().copied()).collect();
        let mut number = 0;
        for waiter in waiters {
            let helper = found.is_helper(waiter);
            for state in view.waits(waiter) {
                let by_session = view.class(state.waker) == Some(ThreadClass::Session);
                let by_peer = found.is_helper(state.waker) || (helper && by_session);
                if by_peer && waits_for_thread(view, state) {
                    found.awaited.insert(state_key(state), number);
                    found.mark(state.waker, (state.end_ns, false, number));
                    number += 1;
                }
            }
        }
        for read in reads {
            found.mark(read.helper, (read.done_ns, false, number));
            found.mark(read.session, (read.needed_ns, true, number));
            number += 1;
        }
        let marks = found.marks.values_mut();
        marks.for_each(|marks| marks.sort_unstable());
        found
    }

    fn mark(&mut self, thread: u32, mark: (u64, bool, u32)) {
        self.marks.entry(thread).or_default().push(mark);
    }

    /// A thread's signals and awaits between two instants, besides the waits seen, with their instants; the last first.
    pub(crate) fn steps(&self, thread: u32, from_ns: u64, to_ns: u64) -> Vec<(u64, Step)> {
        let marks = self.marks.get(&thread).map_or(&[][..], Vec::as_slice);
        let from = marks.partition_point(|&(time_ns, ..)| time_ns <= from_ns);
        let to = marks.partition_point(|&(time_ns, ..)| time_ns <= to_ns);
        let step = |&(time_ns, awaits, number): &(u64, bool, u32)| match awaits {
            false => (time_ns, Step::Signal { number }),
            true => (time_ns, Step::Await { number }),
        };
        marks[from..to.max(from)].iter().rev().map(step).collect()
    }

    /// The signal that a wait is for.
    pub(crate) fn awaited(&self, wait: &State) -> Option<u32> {
        self.awaited.get(&state_key(wait)).copied()
    }

    /// Whether sessions wait for a thread.
    pub(crate) fn is_helper(&self, thread: u32) -> bool {
        self.helpers.contains(&thread)
    }
}

fn state_key(state: &State) -> (u32, u64, u64) {
    (state.thread, state.start_ns, state.end_ns)
}

/// Whether a thread waited for another, except for its flush of the log: replay recomputes that.
fn waits_for_thread(view: &RecordingView<'_>, state: &State) -> bool {
    state.kind == StateKind::Blocked
        && state.end_ns - state.start_ns >= AT_ONCE_NS.get()
        && wait_cause(view, state) == WaitCause::Thread
}

/// Background threads that sessions wait for.
fn helper_threads(view: &RecordingView<'_>) -> BTreeSet<u32> {
    let mut waited_ns: BTreeMap<u32, u64> = BTreeMap::new();
    let mut total_ns = 0;
    for session in view.threads(ThreadClass::Session) {
        for state in view.states(session) {
            let time_ns = state.end_ns - state.start_ns;
            total_ns += time_ns;
            let by_background = view.class(state.waker) == Some(ThreadClass::Background);
            if by_background
                && !view.flushes.is_replica(state.waker)
                && waits_for_thread(view, state)
            {
                *waited_ns.entry(state.waker).or_default() += time_ns;
            }
        }
    }
    let total_ns = total_ns as f64;
    let all_ns: u64 = waited_ns.values().sum();
    if (all_ns as f64) < total_ns * FEW_SHARE.get() {
        return BTreeSet::new();
    }
    waited_ns.retain(|_, waited_ns| *waited_ns as f64 >= total_ns * LEAST_TIME_SHARE.get());
    waited_ns.into_keys().collect()
}

/// A session uses, from `needed_ns` on, the data that a worker had read by `done_ns`.
struct ReadDependency {
    helper: u32,
    done_ns: u64,
    session: u32,
    needed_ns: u64,
}

/// Dependencies of sessions on reads that they hand to I/O workers, such as PostgreSQL 18's, and for which no wait was
/// recorded.
///
/// A session does not wait for a read that is complete before its use, so on fast storage the recording does
/// not show the dependency. Rule: a session uses its reads in the order in which they began. When the read
/// `n` places later begins, the session uses the first; `n` is the largest read-ahead distance that was seen
/// at a wait, at least 2.
fn read_dependencies(rows: &RecordingRows<'_>) -> Vec<ReadDependency> {
    let mut by_session: BTreeMap<u32, Vec<&Call>> = BTreeMap::new();
    for helper in rows.threads(ThreadClass::Background) {
        for (session, read) in thread_reads(rows, helper) {
            by_session.entry(session).or_default().push(read);
        }
    }
    let reads = by_session.values().flatten();
    let read_ns: u64 = reads.map(|read| read.end_ns - read.start_ns).sum();
    let states = rows
        .threads(ThreadClass::Session)
        .flat_map(|session| rows.states(session));
    let sessions_ns: u64 = states.map(|state| state.end_ns - state.start_ns).sum();
    if (read_ns as f64) < LEAST_TIME_SHARE.get() * sessions_ns as f64 {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (session, mut reads) in by_session {
        reads.sort_unstable_by_key(|read| read.start_ns);
        let awaited = awaited_reads(rows, session, &reads);
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
fn thread_reads<'a>(rows: &RecordingRows<'a>, helper: u32) -> Vec<(u32, &'a Call)> {
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
fn awaited_reads(
    rows: &RecordingRows<'_>,
    session: u32,
    reads: &[&Call],
) -> BTreeMap<usize, usize> {
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
