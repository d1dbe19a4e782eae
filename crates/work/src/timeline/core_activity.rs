//! When recorded threads ran on each core.

use tierwise_recording::{State, StateKind};

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
