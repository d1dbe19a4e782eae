//! Events of each core, in order: wakeups, starts and stops of threads.

use std::collections::BTreeMap;

use tierwise_recording::{State, StateKind};

/// An event of a thread on a core; variants are in the order of events at one instant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CoreEvent {
    /// Leaves its core; `waits`: still runnable.
    Stops {
        waits: bool,
    },
    /// Woken by a thread.
    Wakes {
        by: u32,
    },
    Runs,
}

/// Instant, event and thread of each core's events, in order.
pub(crate) fn events(states: &[State]) -> BTreeMap<u16, Vec<(u64, CoreEvent, u32)>> {
    let mut events: BTreeMap<u16, Vec<(u64, CoreEvent, u32)>> = BTreeMap::new();
    for (at, state) in states.iter().enumerate() {
        let after = |next: &&State| next.thread == state.thread && next.start_ns == state.end_ns;
        let next = states.get(at + 1).filter(after).map(|next| next.kind);
        let of_core = events.entry(state.cpu).or_default();
        let before = at.checked_sub(1).map(|before| &states[before]);
        let before = before
            .filter(|before| before.thread == state.thread && before.end_ns == state.start_ns);
        match state.kind {
            StateKind::Cpu => {
                let waits = next == Some(StateKind::Runnable);
                of_core.push((state.start_ns, CoreEvent::Runs, state.thread));
                of_core.push((state.end_ns, CoreEvent::Stops { waits }, state.thread));
            }
            StateKind::Runnable => {
                let blocked = before.filter(|before| before.kind == StateKind::Blocked);
                let wakes = blocked.map(|blocked| CoreEvent::Wakes { by: blocked.waker });
                let wakes = wakes.filter(|_| next == Some(StateKind::Cpu));
                of_core.extend(wakes.map(|wakes| (state.start_ns, wakes, state.thread)));
            }
            StateKind::Blocked => {}
        }
    }
    events
        .values_mut()
        .for_each(|events| events.sort_unstable());
    events
}
