//! When recorded threads ran on each core.

use tierwise_recording::{State, StateKind};

use crate::cold_factor;

/// Intervals of recorded threads on each core, in order. Unrecorded threads may have run too, but rarely.
#[derive(Default)]
pub(crate) struct CoreActivity {
    busy_spans: Vec<Vec<(u64, u64)>>,
}

impl CoreActivity {
    pub(crate) fn new(states: &[State]) -> Self {
        let mut busy_spans: Vec<Vec<(u64, u64)>> = Vec::new();
        for state in states.iter().filter(|state| state.kind == StateKind::Cpu) {
            let core = usize::from(state.cpu);
            if busy_spans.len() <= core {
                busy_spans.resize(core + 1, Vec::new());
            }
            busy_spans[core].push((state.start_ns, state.end_ns));
        }
        busy_spans.iter_mut().for_each(|spans| spans.sort_unstable());
        Self { busy_spans }
    }

    /// Whether any of `of` cores is idle; a core without recorded threads counts as idle.
    pub(crate) fn any_idles(&self, of: u32, time_ns: u64) -> bool {
        let busy = |spans: &&Vec<(u64, u64)>| {
            let after = spans.partition_point(|&(start_ns, _)| start_ns < time_ns);
            spans[..after].last().is_some_and(|last| last.1 >= time_ns)
        };
        self.busy_spans.iter().filter(busy).count() < of as usize
    }
}

/// Mean of [`cold_factor`] over the processor time of recorded threads; 1 where none ran. A thread starts on the core
/// that was idle for the shortest time, as in a replay.
pub(crate) fn mean_cold_factor(states: &[State]) -> f64 {
    let mut runs: Vec<&State> = states
        .iter()
        .filter(|state| state.kind == StateKind::Cpu)
        .collect();
    runs.sort_unstable_by_key(|state| state.start_ns);
    let mut last_end_ns: Vec<Option<u64>> = Vec::new();
    let (mut cold_ns, mut warm_ns) = (0.0, 0.0);
    for state in runs {
        let idle_since = last_end_ns.iter().flatten();
        let idle_since = idle_since.filter(|end_ns| **end_ns <= state.start_ns).max();
        if let Some(end_ns) = idle_since {
            let ran_ns = (state.end_ns - state.start_ns) as f64;
            cold_ns += ran_ns;
            warm_ns += ran_ns / cold_factor(state.start_ns - end_ns);
        }
        let core = usize::from(state.cpu);
        last_end_ns.resize(last_end_ns.len().max(core + 1), None);
        last_end_ns[core] = Some(state.end_ns);
    }
    if warm_ns > 0.0 { cold_ns / warm_ns } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_states::state;

    #[test]
    fn a_core_is_idle_between_its_threads_and_where_none_was_recorded() {
        let states = [
            state(0, (0, 400), StateKind::Cpu),
            state(1, (600, 900), StateKind::Cpu),
        ];
        let cores = CoreActivity::new(&states);
        let idles = [200_000, 500_000, 700_000].map(|time_ns| cores.any_idles(1, time_ns));
        assert_eq!(idles, [false, true, false]);
        assert!(cores.any_idles(2, 200_000));
    }
}
