//! What runs cost more on a core that was idle, and what recorded runs paid.

use tierwise_recording::{State, StateKind};

use crate::constants::{COLD_MOST, COLD_NS, COLD_STEP_NS};

/// What runs on one core cost more because it was idle.
///
/// Models: caches, translations and branch predictors that others' work, or a hypervisor, took over meanwhile. They are
/// filled again by the runs that follow, each of which can pay for what it touches. A pause of *w* costs
/// *a* ln(1 + *w* / *b*), and a run pays at most some times its own length. Assumption: whatever the runs do. Source:
/// docs/evidence/work-calibration.md#cold-cores.
#[derive(Clone, Copy, Debug, Default)]
pub struct ColdCoreCost {
    unpaid_ns: f64,
}

impl ColdCoreCost {
    /// The core was idle for a time.
    pub fn idle(&mut self, idle_ns: u64) {
        let lost_ns = COLD_STEP_NS.get() * (idle_ns as f64 / COLD_NS.get()).ln_1p();
        self.unpaid_ns = self.unpaid_ns.max(lost_ns);
    }

    /// What a run costs more that takes `warm_ns` on a warm core.
    pub fn pay(&mut self, warm_ns: f64) -> f64 {
        self.pay_at_most(warm_ns * COLD_MOST.get())
    }

    /// What a run that took `ran_ns` takes on a warm core; the inverse of [`Self::pay`].
    fn warm_ns(&mut self, ran_ns: f64) -> f64 {
        let most = COLD_MOST.get();
        ran_ns - self.pay_at_most(ran_ns * most / (1.0 + most))
    }

    fn pay_at_most(&mut self, most_ns: f64) -> f64 {
        let paid_ns = self.unpaid_ns.min(most_ns);
        self.unpaid_ns -= paid_ns;
        paid_ns
    }
}

/// Processor time of recorded threads over what it would have been on warm cores; 1 where none ran.
pub(crate) fn mean_cold_factor(states: &[State]) -> f64 {
    let runs = states.iter().filter(|state| state.kind == StateKind::Cpu);
    let mut runs: Vec<&State> = runs.collect();
    runs.sort_unstable_by_key(|state| state.start_ns);
    let mut cores: Vec<(Option<u64>, ColdCoreCost)> = Vec::new();
    let (mut cold_ns, mut warm_ns) = (0.0, 0.0);
    for run in runs {
        let core = usize::from(run.cpu);
        cores.resize(cores.len().max(core + 1), Default::default());
        let (ended_at, coldness) = &mut cores[core];
        if let Some(ended_ns) = *ended_at {
            let ran_ns = (run.end_ns - run.start_ns) as f64;
            coldness.idle(run.start_ns.saturating_sub(ended_ns));
            cold_ns += ran_ns;
            warm_ns += coldness.warm_ns(ran_ns);
        }
        *ended_at = Some(run.end_ns);
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
    use crate::recording_rows::test_state;

    fn runs(every_us: u64, each_us: u64) -> Vec<State> {
        let starts = (0..10).map(|at| at * every_us);
        starts
            .map(|start_us| test_state(0, (start_us, start_us + each_us), StateKind::Cpu))
            .collect()
    }

    #[test]
    fn runs_right_after_others_are_warm_and_late_ones_cold() {
        assert!((mean_cold_factor(&runs(100, 100)) - 1.0).abs() < 1e-9);
        assert!((mean_cold_factor(&[]) - 1.0).abs() < 1e-9);
        // Short runs pay as much as they can.
        let most = 1.0 + COLD_MOST.get();
        assert!((mean_cold_factor(&runs(10_000, 1)) - most).abs() < 1e-9);
        // Long runs pay what the pause costs.
        let mut cold = ColdCoreCost::default();
        cold.idle(9_000_000);
        let lost_ns = cold.pay(1e9);
        let expected = 1e6 / (1e6 - lost_ns);
        assert!((mean_cold_factor(&runs(10_000, 1_000)) - expected).abs() < 1e-9);
    }

    #[test]
    fn what_a_run_cannot_pay_is_left_to_the_next() {
        let mut cold = ColdCoreCost::default();
        cold.idle(10_000_000);
        let whole_ns = ColdCoreCost { ..cold }.pay(1e9);
        let first_ns = cold.pay(1_000.0);
        assert!((first_ns - 1_000.0 * COLD_MOST.get()).abs() < 1e-9);
        assert!((first_ns + cold.pay(1e9) - whole_ns).abs() < 1e-6);
        assert!(cold.pay(1e9).abs() < 1e-9);
    }

    #[test]
    fn warm_time_is_the_inverse_of_what_is_paid() {
        for warm_ns in [500.0, 20_000.0, 3_000_000.0] {
            let mut cold = ColdCoreCost::default();
            cold.idle(2_000_000);
            let mut same = cold;
            let ran_ns = warm_ns + cold.pay(warm_ns);
            assert!((same.warm_ns(ran_ns) - warm_ns).abs() < 1e-6);
        }
    }
}
