//! Coldness of each recorded burst's core at its start.

use tierwise_recording::{Recording, State, StateKind, ThreadClass};

use crate::WarmupCost;

/// Of each state on a core: the core's coldness when it began; 0 for other states.
pub(crate) fn cold_starts(recording: &Recording, states: &[State]) -> Vec<f32> {
    let cost = WarmupCost::default();
    let mut order: Vec<u32> = (0..states.len() as u32)
        .filter(|&at| states[at as usize].kind == StateKind::Cpu)
        .collect();
    order.sort_unstable_by_key(|&at| (states[at as usize].cpu, states[at as usize].start_ns));
    let mut cold_starts = vec![0.0; states.len()];
    let bursts = &recording.about.bursts;
    let mut before: Option<((u16, usize), u64, f64)> = None;
    for at in order {
        let state: &State = &states[at as usize];
        let burst = bursts.partition_point(|burst| burst.end_ns <= state.start_ns);
        let place = (state.cpu, burst);
        // A core's use before a burst is unknown: assume that it was in use.
        let last = before.filter(|last| last.0 == place);
        let (end_ns, cold) = last.map_or((state.start_ns, 0.0), |last| (last.1, last.2));
        let cold = cost.after_idle(cold, state.start_ns.saturating_sub(end_ns));
        cold_starts[at as usize] = cold as f32;
        let class = recording.threads[state.thread as usize].class;
        let client = class == ThreadClass::Client;
        let ran_ns = (state.end_ns - state.start_ns) as f64;
        let warm_ns = cost.warm(ran_ns, cold * cost.share(client)).0;
        let left = cost.run(warm_ns, cold).1;
        before = Some((place, state.end_ns.max(end_ns), left));
    }
    cold_starts
}
