//! Dependencies between threads of the engine, as signals and awaits.

use std::collections::{BTreeMap, BTreeSet};

use tierwise_recording::{State, StateKind, ThreadClass};

use crate::constants::{HELPER_LEAST_NS, HELPER_LEAST_SHARE, HELPERS_LEAST_SHARE};
use crate::index::view::View;
use crate::log::flushes::LogFlushes;
use crate::timeline::wait::{WaitCause, wait_cause};
use crate::transactions::io_workers;
use crate::{Disabled, Mechanism};

/// One end of a dependency between two threads, by the signal's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DependencyMark {
    /// Wakes the thread that awaits it.
    Signal(u32),
    /// Must have been signalled.
    Await(u32),
}

/// All dependencies between threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadDependencies {
    /// Of each thread: its signals and awaits, with their instants.
    marks: BTreeMap<u32, Vec<(u64, DependencyMark)>>,
    /// The signal that a thread's wait is for, by the index of its state.
    awaited: BTreeMap<(u32, u32), u32>,
    helpers: BTreeSet<u32>,
}

impl ThreadDependencies {
    pub(crate) fn new(view: &View<'_>, flushes: &LogFlushes, disabled: Disabled) -> Self {
        if disabled.has(Mechanism::ThreadDependencies) {
            return Self::default();
        }
        let read_dependencies = match disabled.has(Mechanism::IoWorkers) {
            true => Vec::new(),
            false => io_workers::read_dependencies(view),
        };
        let mut dependencies = Self {
            helpers: helpers(view, flushes),
            ..Self::default()
        };
        dependencies.helpers.extend(
            read_dependencies
                .iter()
                .map(|read_dependency| read_dependency.helper),
        );
        let sessions: Vec<u32> = view.threads(ThreadClass::Session).collect();
        let waiters = sessions
            .iter()
            .chain(&dependencies.helpers)
            .copied()
            .collect::<Vec<u32>>();
        let mut number = 0;
        for waiter in waiters {
            let helper = dependencies.helpers.contains(&waiter);
            for (index, state) in view.states(waiter).iter().enumerate() {
                let by_session = view.class(state.waker) == Some(ThreadClass::Session);
                let by_peer = dependencies.helpers.contains(&state.waker) || (helper && by_session);
                if by_peer && waits(view, flushes, state) {
                    dependencies.awaited.insert((waiter, index as u32), number);
                    dependencies.mark(state.waker, state.end_ns, DependencyMark::Signal(number));
                    number += 1;
                }
            }
        }
        for read_dependency in read_dependencies {
            dependencies.mark(
                read_dependency.helper,
                read_dependency.done_ns,
                DependencyMark::Signal(number),
            );
            dependencies.mark(
                read_dependency.session,
                read_dependency.needed_ns,
                DependencyMark::Await(number),
            );
            number += 1;
        }
        dependencies
            .marks
            .values_mut()
            .for_each(|marks| marks.sort_unstable());
        dependencies
    }

    fn mark(&mut self, thread: u32, time_ns: u64, mark: DependencyMark) {
        self.marks.entry(thread).or_default().push((time_ns, mark));
    }

    /// A thread's signals and awaits between two instants, besides the waits seen.
    pub(crate) fn marks(&self, thread: u32, from_ns: u64, to_ns: u64) -> &[(u64, DependencyMark)] {
        let Some(marks) = self.marks.get(&thread) else {
            return &[];
        };
        let from = marks.partition_point(|&(time_ns, _)| time_ns <= from_ns);
        let to = marks.partition_point(|&(time_ns, _)| time_ns <= to_ns);
        &marks[from..to.max(from)]
    }

    /// The signal that a wait is for.
    pub(crate) fn awaited(&self, thread: u32, state: u32) -> Option<u32> {
        self.awaited.get(&(thread, state)).copied()
    }

    /// Whether sessions wait for a thread.
    pub(crate) fn is_helper(&self, thread: u32) -> bool {
        self.helpers.contains(&thread)
    }
}

/// Whether a thread waited for another, except for its flush of the log: replay recomputes that.
fn waits(view: &View<'_>, flushes: &LogFlushes, state: &State) -> bool {
    state.kind == StateKind::Blocked
        && state.end_ns - state.start_ns >= HELPER_LEAST_NS.get()
        && wait_cause(view, flushes, state) == WaitCause::Thread
}

/// Background threads that sessions wait for.
fn helpers(view: &View<'_>, flushes: &LogFlushes) -> BTreeSet<u32> {
    let mut waited_ns: BTreeMap<u32, u64> = BTreeMap::new();
    let mut total_ns = 0;
    for session in view.threads(ThreadClass::Session) {
        for state in view.states(session) {
            total_ns += state.end_ns - state.start_ns;
            let by_background = view.class(state.waker) == Some(ThreadClass::Background);
            let copies = flushes.is_replica(state.waker);
            if by_background && !copies && waits(view, flushes, state) {
                *waited_ns.entry(state.waker).or_default() += state.end_ns - state.start_ns;
            }
        }
    }
    let all_ns: u64 = waited_ns.values().sum();
    if (all_ns as f64) < total_ns as f64 * HELPERS_LEAST_SHARE.get() {
        return BTreeSet::new();
    }
    let least_ns = total_ns as f64 * HELPER_LEAST_SHARE.get();
    let helps = |&(_, waited_ns): &(u32, u64)| waited_ns as f64 >= least_ns;
    waited_ns
        .into_iter()
        .filter(helps)
        .map(|(thread, _)| thread)
        .collect()
}
