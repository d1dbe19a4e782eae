//! What it costs to run on a core that was idle, and what recorded runs paid.

use tierwise_recording::{State, StateKind};

use crate::constants::{COLD_NS, COLD_SHARE};

/// Factor of the processor time of a run that starts on a core which was idle for a time, over that of one which was
/// busy just before: 1 + s (1 − exp(−w / t)).
///
/// Models: caches, translations and branch predictors that others' work, or a hypervisor, took over meanwhile, and the
/// clock frequency of a core that slept. Assumption: in proportion to the run, whatever it does. Source:
/// docs/evidence/work-calibration.md#cold-cores.
#[must_use]
pub fn cold_factor(idle_ns: u64) -> f64 {
    1.0 + COLD_SHARE.get() * (1.0 - (-(idle_ns as f64) / COLD_NS.get()).exp())
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
    if warm_ns > 0.0 {
        cold_ns / warm_ns
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_states::state;

    #[test]
    fn runs_right_after_others_are_warm_and_late_ones_cold() {
        let warm: Vec<State> = (0..10)
            .map(|at| state(0, (at * 100, at * 100 + 100), StateKind::Cpu))
            .collect();
        assert!((mean_cold_factor(&warm) - 1.0).abs() < 1e-9);
        let cold: Vec<State> = (0..10)
            .map(|at| state(0, (at * 10_000, at * 10_000 + 100), StateKind::Cpu))
            .collect();
        let expected = cold_factor(9_900_000);
        assert!((mean_cold_factor(&cold) - expected).abs() < 1e-9);
        assert!((mean_cold_factor(&[]) - 1.0).abs() < 1e-9);
    }
}
