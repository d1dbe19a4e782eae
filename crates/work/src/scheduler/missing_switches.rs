//! Restores switches that no event reports: the instants at which threads really got their cores.
//!
//! Some cores of virtual machines report no switch away from the idle thread (docs/reference/recordings.md).
//! The recorder then lets a thread run from its wakeup on. But an idle core must be started first, which
//! takes longer than many CPU bursts: 25 µs for a halted core. That time is no demand, so it becomes
//! runnable time before the burst. Its length is that of fully reported wakeups (`wakeup_latency.rs`).

use tierwise_recording::{Call, NONE, Recording, State, StateKind};

use crate::constants::WAKEUP_MOST_SHARE;
use crate::scheduler::wakeup_latency::CoreActivity;
use crate::{Disabled, Mechanism, WakeupRules};

/// A recording's states with restored switches.
#[derive(Debug, Default)]
pub(crate) struct RepairedStates {
    /// As [`Recording::states`].
    pub(crate) states: Vec<State>,
    /// Core selection and wakeup latency.
    pub(crate) wakeups: WakeupRules,
}

/// Restores missing switches in the states of a recording.
pub(crate) fn repaired(recording: &Recording, disabled: Disabled) -> RepairedStates {
    let cores = CoreActivity::new(&recording.states);
    let wakeups = WakeupRules::of(&recording.states, &cores);
    if disabled.has(Mechanism::MissingSwitches) {
        let states = recording.states.clone();
        return RepairedStates { states, wakeups };
    }
    let mut states: Vec<State> = Vec::with_capacity(recording.states.len());
    for state in &recording.states {
        let untold = states.last().is_some_and(|before| is_untold(before, state));
        let mut state = *state;
        let idle_ns = || cores.idle_ns(state.cpu, state.start_ns);
        let idle_ns = untold.then(idle_ns).flatten();
        let wake_ns = idle_ns.map_or(0, |idle_ns| wakeups.start_latency_ns(idle_ns));
        if wake_ns > 0 {
            let runs_ns = runs_from(state, wake_ns, &recording.calls);
            states.push(State {
                end_ns: runs_ns,
                kind: StateKind::Runnable,
                waker: NONE,
                ..state
            });
            state.start_ns = runs_ns;
        }
        states.push(state);
    }
    RepairedStates { states, wakeups }
}

/// Whether a thread runs from its wakeup on without a delay: no switch showed when it got the core.
fn is_untold(before: &State, state: &State) -> bool {
    before.thread == state.thread
        && before.end_ns == state.start_ns
        && before.kind == StateKind::Blocked
        && state.kind == StateKind::Cpu
}

/// When a thread that was woken at the state's begin got its core: before its next call.
fn runs_from(state: State, wake_ns: u64, calls: &[Call]) -> u64 {
    let next = calls
        .partition_point(|call| (call.thread, call.start_ns) <= (state.thread, state.start_ns));
    let called_ns = calls
        .get(next)
        .filter(|call| call.thread == state.thread)
        .map_or(u64::MAX, |call| call.start_ns);
    let length_ns = (state.end_ns - state.start_ns) as f64;
    let latest_ns = state.start_ns + (length_ns * WAKEUP_MOST_SHARE.get()) as u64;
    (state.start_ns + wake_ns).min(latest_ns).min(called_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(start_us: u64, end_us: u64, kind: StateKind, cpu: u16) -> State {
        State {
            thread: 0,
            start_ns: start_us * 1000,
            end_ns: end_us * 1000,
            kind,
            cpu,
            waker: NONE,
            call: NONE,
        }
    }

    /// Fully reported wakeups on core 0, 20 µs each. Then one on core 1 without a reported switch.
    fn recording() -> Recording {
        let mut states = Vec::new();
        for at in (0..2000).step_by(100) {
            states.push(state(at, at + 50, StateKind::Blocked, 0));
            states.push(state(at + 50, at + 70, StateKind::Runnable, 0));
            states.push(state(at + 70, at + 100, StateKind::Cpu, 0));
        }
        states.push(state(2000, 2050, StateKind::Blocked, 1));
        states.push(state(2050, 2150, StateKind::Cpu, 1));
        Recording {
            states,
            ..Recording::default()
        }
    }

    #[test]
    fn a_core_whose_switch_was_not_told_took_as_long_as_others_to_wake() {
        let repaired = repaired(&recording(), Disabled::default());
        assert_eq!(repaired.wakeups.start_latency_ns(u64::MAX), 20_000);
        let last: Vec<_> = repaired.states.iter().rev().take(2).collect();
        assert_eq!((last[0].start_ns, last[0].end_ns), (2_070_000, 2_150_000));
        assert_eq!(last[1].kind, StateKind::Runnable);
        assert_eq!(last[1].end_ns, last[0].start_ns);
        let all_ns = |states: &[State]| states.iter().map(|s| s.end_ns - s.start_ns).sum::<u64>();
        assert_eq!(all_ns(&repaired.states), all_ns(&recording().states));
    }

    #[test]
    fn a_waking_takes_no_more_than_most_of_its_stretch() {
        let mut recording = recording();
        recording.states.last_mut().expect("a state").end_ns = 2_055_000;
        let repaired = repaired(&recording, Disabled::default());
        assert_eq!(repaired.states.last().map(|s| s.start_ns), Some(2_054_000));
    }
}
