//! Threads that work for a session and it waits for: who waits for whom, as signals.

use std::collections::{BTreeMap, BTreeSet};

use tierwise_recording::{State, StateKind, ThreadClass};

use crate::flushes::LogFlushes;
use crate::lent;
use crate::view::View;
use crate::wait::{Why, why};

/// Sessions that wait for all background threads together less than this share of their time have no helpers,
/// and a thread for which they wait less than the second is none.
const LEAST_SHARES: (f64, f64) = (0.05, 0.005);
/// Shorter waits for a helper are hand-overs that take no time of their own.
const LEAST_NS: u64 = 20_000;

/// What happens between two threads, by the signal's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    /// Lets who awaits it go on.
    Signal(u32),
    /// Must have been signalled.
    Await(u32),
}

/// Who signals, who awaits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peers {
    /// Of each thread: when it signals or must have been signalled, and what.
    marks: BTreeMap<u32, Vec<(u64, Mark)>>,
    /// What the wait of a thread, by the index of its state, is for.
    awaited: BTreeMap<(u32, u32), u32>,
    helpers: BTreeSet<u32>,
}

impl Peers {
    pub(crate) fn new(view: &View<'_>, flushes: &LogFlushes) -> Self {
        let needs = lent::needs(view);
        let mut peers = Self {
            helpers: helpers(view, flushes),
            ..Self::default()
        };
        peers.helpers.extend(needs.iter().map(|need| need.helper));
        let sessions: Vec<u32> = view.threads(ThreadClass::Session).collect();
        let waiters = sessions
            .iter()
            .chain(&peers.helpers)
            .copied()
            .collect::<Vec<u32>>();
        let mut number = 0;
        for waiter in waiters {
            let helper = peers.helpers.contains(&waiter);
            for (index, state) in view.states(waiter).iter().enumerate() {
                let by_session = view.class(state.waker) == Some(ThreadClass::Session);
                let by_peer = peers.helpers.contains(&state.waker) || (helper && by_session);
                if by_peer && waits(view, flushes, state) {
                    peers.awaited.insert((waiter, index as u32), number);
                    peers.mark(state.waker, state.end_ns, Mark::Signal(number));
                    number += 1;
                }
            }
        }
        for need in needs {
            peers.mark(need.helper, need.done_ns, Mark::Signal(number));
            peers.mark(need.session, need.needed_ns, Mark::Await(number));
            number += 1;
        }
        peers
            .marks
            .values_mut()
            .for_each(|marks| marks.sort_unstable());
        peers
    }

    fn mark(&mut self, thread: u32, time_ns: u64, mark: Mark) {
        self.marks.entry(thread).or_default().push((time_ns, mark));
    }

    /// What a thread signals and awaits between two instants, beside the waits it was seen in.
    pub(crate) fn marks(&self, thread: u32, from_ns: u64, to_ns: u64) -> &[(u64, Mark)] {
        let Some(marks) = self.marks.get(&thread) else {
            return &[];
        };
        let from = marks.partition_point(|&(time_ns, _)| time_ns <= from_ns);
        let to = marks.partition_point(|&(time_ns, _)| time_ns <= to_ns);
        &marks[from..to.max(from)]
    }

    /// What a wait is for.
    pub(crate) fn awaited(&self, thread: u32, state: u32) -> Option<u32> {
        self.awaited.get(&(thread, state)).copied()
    }

    /// Whether sessions wait for a thread.
    pub(crate) fn is_helper(&self, thread: u32) -> bool {
        self.helpers.contains(&thread)
    }
}

/// Whether a thread waited for another, but not for its flush of the log: that is computed anew.
fn waits(view: &View<'_>, flushes: &LogFlushes, state: &State) -> bool {
    state.kind == StateKind::Blocked
        && state.end_ns - state.start_ns >= LEAST_NS
        && why(view, flushes, state) == Why::Peer
}

/// Background threads that sessions wait for.
fn helpers(view: &View<'_>, flushes: &LogFlushes) -> BTreeSet<u32> {
    let mut waited_ns: BTreeMap<u32, u64> = BTreeMap::new();
    let mut total_ns = 0;
    for session in view.threads(ThreadClass::Session) {
        for state in view.states(session) {
            total_ns += state.end_ns - state.start_ns;
            let by_background = view.class(state.waker) == Some(ThreadClass::Background);
            let copies = flushes.is_members(state.waker);
            if by_background && !copies && waits(view, flushes, state) {
                *waited_ns.entry(state.waker).or_default() += state.end_ns - state.start_ns;
            }
        }
    }
    let all_ns: u64 = waited_ns.values().sum();
    if (all_ns as f64) < total_ns as f64 * LEAST_SHARES.0 {
        return BTreeSet::new();
    }
    let least_ns = total_ns as f64 * LEAST_SHARES.1;
    let helps = |&(_, waited_ns): &(u32, u64)| waited_ns as f64 >= least_ns;
    waited_ns
        .into_iter()
        .filter(helps)
        .map(|(thread, _)| thread)
        .collect()
}
