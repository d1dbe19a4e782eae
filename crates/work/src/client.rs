//! What a client on the same machine did while its session waited for it.

use tierwise_recording::{State, StateKind, ThreadClass};

use crate::view::View;

/// A client's part of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientPart {
    /// On a core.
    pub(crate) cpu_ns: u64,
    /// Off it, before.
    pub(crate) after_wait_ns: u64,
    /// Neither on a core nor ready: thinks, or is elsewhere.
    pub(crate) away_ns: u64,
}

/// Splits a session's wait for its client; a client that was not recorded is away.
pub(crate) fn part(view: &View<'_>, wait: &State) -> ClientPart {
    let length_ns = wait.end_ns - wait.start_ns;
    if view.class(wait.waker) != Some(ThreadClass::Client) {
        return ClientPart {
            away_ns: length_ns,
            ..ClientPart::default()
        };
    }
    let states = view.states(wait.waker);
    let first = states.partition_point(|state| state.end_ns <= wait.start_ns);
    let mut part = ClientPart::default();
    let mut seen_ns = 0;
    for state in states[first..]
        .iter()
        .take_while(|state| state.start_ns < wait.end_ns)
    {
        let inside_ns = state.end_ns.min(wait.end_ns) - state.start_ns.max(wait.start_ns);
        seen_ns += inside_ns;
        match state.kind {
            StateKind::Cpu => part.cpu_ns += inside_ns,
            StateKind::Blocked => part.away_ns += inside_ns,
            StateKind::Runnable => {}
        }
    }
    part.away_ns += length_ns - seen_ns.min(length_ns);
    part.after_wait_ns = off_core_ns(states, first);
    part
}

/// How long the client had been off its core before it first ran at or after a state.
fn off_core_ns(states: &[State], first: usize) -> u64 {
    let Some(runs) = states[first..]
        .iter()
        .position(|s| s.kind == StateKind::Cpu)
    else {
        return 0;
    };
    let off = states[..first + runs]
        .iter()
        .rev()
        .take_while(|s| s.kind != StateKind::Cpu);
    off.map(|state| state.end_ns - state.start_ns).sum()
}
