//! Threads that work for a session and it waits for: who waits for whom, as signals.

use std::collections::{BTreeMap, BTreeSet};

use tierwise_recording::{State, StateKind, ThreadClass};

use crate::flushes::LogFlushes;
use crate::view::View;
use crate::wait::{Why, why};

/// Sessions that wait for all background threads together less than this share of their time have no helpers,
/// and a thread for which they wait less than the second is none.
const LEAST_SHARES: (f64, f64) = (0.05, 0.005);
/// Shorter waits for a helper are hand-overs that take no time of their own.
const LEAST_NS: u64 = 20_000;

/// Who signals, who awaits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peers {
    /// Of each thread: when it signals, and what.
    signals: BTreeMap<u32, Vec<(u64, u32)>>,
    /// What the wait of a thread, by the index of its state, is for.
    awaited: BTreeMap<(u32, u32), u32>,
    helpers: BTreeSet<u32>,
}

impl Peers {
    pub(crate) fn new(view: &View<'_>, flushes: &LogFlushes) -> Self {
        let mut peers = Self {
            helpers: helpers(view, flushes),
            ..Self::default()
        };
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
                    let signals = peers.signals.entry(state.waker).or_default();
                    signals.push((state.end_ns, number));
                    number += 1;
                }
            }
        }
        peers
            .signals
            .values_mut()
            .for_each(|signals| signals.sort_unstable());
        peers
    }

    /// What a thread signals between two instants.
    pub(crate) fn signals(&self, thread: u32, from_ns: u64, to_ns: u64) -> &[(u64, u32)] {
        let Some(signals) = self.signals.get(&thread) else {
            return &[];
        };
        let from = signals.partition_point(|&(time_ns, _)| time_ns <= from_ns);
        let to = signals.partition_point(|&(time_ns, _)| time_ns <= to_ns);
        &signals[from..to.max(from)]
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
