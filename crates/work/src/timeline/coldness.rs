//! What runs cost more on a core that was idle, and what recorded runs paid.

use std::collections::BTreeMap;

use tierwise_recording::{Burst, State, StateKind};

use crate::constants::{COLD_MOST, COLD_NS, COLD_STEP_NS};

/// What runs on one core cost more because it was idle.
///
/// Models: caches, translations and branch predictors that others' work, or a hypervisor, took over meanwhile. They are
/// filled again by the runs that follow, each of which can pay for what it touches. A pause of *w* costs
/// *a* ln(1 + *w* / *b*) for what all threads use, and as much for what each thread alone uses
/// ([`ThreadColdness`]). A run pays at most some times its own length. Assumption: whatever the runs do. Source:
/// docs/evidence/work-calibration.md#cold-cores.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coldness {
    unpaid_ns: f64,
}

impl Coldness {
    /// The core was idle for a time.
    pub fn idle(&mut self, idle_ns: u64) {
        let lost_ns = COLD_STEP_NS.get() * (idle_ns as f64 / COLD_NS.get()).ln_1p();
        self.unpaid_ns = self.unpaid_ns.max(lost_ns);
    }

    fn pay_at_most(&mut self, most_ns: f64) -> f64 {
        let paid_ns = self.unpaid_ns.min(most_ns);
        self.unpaid_ns -= paid_ns;
        paid_ns
    }
}

/// What a thread's runs cost more because its core idled while it was away: what it alone uses is lost to it, whichever
/// thread ran in between.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadColdness {
    /// The core that it left last, and how long that one had been idle since some moment.
    left: Option<(u32, u64)>,
    coldness: Coldness,
}

impl ThreadColdness {
    /// The thread leaves its core, which has been idle for `idle_ns` since some moment.
    pub fn leave(&mut self, core: u32, idle_ns: u64) {
        self.left = Some((core, idle_ns));
    }

    /// The thread needs a core again. `idle_ns`: of each core, as in [`Self::leave`].
    pub fn resume(&mut self, idle_ns: impl FnOnce(u32) -> u64) {
        if let Some((core, left_at_ns)) = self.left {
            self.coldness.idle(idle_ns(core).saturating_sub(left_at_ns));
        }
    }

    /// What a run costs more that takes `warm_ns` on a warm core: for the thread, and for its core if that was idle.
    pub fn pay(&mut self, core: Option<&mut Coldness>, warm_ns: f64) -> f64 {
        self.pay_at_most(core, warm_ns * COLD_MOST.get())
    }

    /// What a run that took `ran_ns` takes on a warm core; the inverse of [`Self::pay`].
    fn warm_ns(&mut self, core: &mut Coldness, ran_ns: f64) -> f64 {
        let most = COLD_MOST.get();
        ran_ns - self.pay_at_most(Some(core), ran_ns * most / (1.0 + most))
    }

    fn pay_at_most(&mut self, core: Option<&mut Coldness>, most_ns: f64) -> f64 {
        let own_ns = self.coldness.pay_at_most(most_ns);
        own_ns + core.map_or(0.0, |core| core.pay_at_most(most_ns - own_ns))
    }
}

/// A core of the recording.
#[derive(Default)]
struct RecordedCore {
    runs: bool,
    changed_ns: u64,
    /// Until it changed last.
    idle_ns: u64,
    coldness: Coldness,
}

impl RecordedCore {
    fn idle_ns(&self, at_ns: u64) -> u64 {
        let since_ns = if self.runs { at_ns } else { self.changed_ns };
        self.idle_ns + at_ns.saturating_sub(since_ns)
    }

    fn change(&mut self, at_ns: u64, runs: bool) {
        self.idle_ns = self.idle_ns(at_ns);
        (self.changed_ns, self.runs) = (at_ns, runs);
    }
}

/// Processor time of recorded threads over what it would have been on warm cores; 1 where none ran.
pub(crate) fn mean_cold_factor(states: &[State], bursts: &[Burst]) -> f64 {
    let runs = states.iter().filter(|state| state.kind == StateKind::Cpu);
    let mut edges: Vec<(u64, bool, &State)> = runs
        .flat_map(|run| [(run.start_ns, true, run), (run.end_ns, false, run)])
        .collect();
    edges.sort_unstable_by_key(|(at_ns, begins, run)| (*at_ns, *begins, run.thread));
    let mut threads: BTreeMap<u32, ThreadColdness> = BTreeMap::new();
    let mut cores: BTreeMap<u32, RecordedCore> = BTreeMap::new();
    let mut ends = bursts.iter().map(|burst| burst.end_ns).peekable();
    let (mut cold_ns, mut warm_ns) = (0.0, 0.0);
    for (at_ns, begins, run) in edges {
        if ends.next_if(|end_ns| *end_ns < at_ns).is_some() {
            // What they did until this burst is not known.
            threads.clear();
            cores.clear();
        }
        let number = u32::from(run.cpu);
        if !begins {
            let core = cores.entry(number).or_default();
            core.change(at_ns, false);
            let thread = threads.entry(run.thread).or_default();
            thread.leave(number, core.idle_ns);
            continue;
        }
        if let Some(core) = cores.get_mut(&number) {
            core.coldness.idle(at_ns.saturating_sub(core.changed_ns));
            core.change(at_ns, true);
        }
        let Some(thread) = threads.get_mut(&run.thread) else {
            continue;
        };
        thread.resume(|core| cores.get(&core).map_or(0, |core| core.idle_ns(at_ns)));
        let core = &mut cores.entry(number).or_default().coldness;
        let ran_ns = (run.end_ns - run.start_ns) as f64;
        cold_ns += ran_ns;
        warm_ns += thread.warm_ns(core, ran_ns);
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
    use crate::rows::state;

    fn runs(every_us: u64, each_us: u64) -> Vec<State> {
        let starts = (0..10).map(|at| at * every_us);
        starts
            .map(|start_us| state(0, (start_us, start_us + each_us), StateKind::Cpu))
            .collect()
    }

    /// Of runs on one core, in one burst.
    fn factor(runs: &[State]) -> f64 {
        mean_cold_factor(runs, &[])
    }

    #[test]
    fn runs_right_after_others_are_warm_and_late_ones_cold() {
        assert!((factor(&runs(100, 100)) - 1.0).abs() < 1e-9);
        assert!((factor(&[]) - 1.0).abs() < 1e-9);
        // Short runs pay as much as they can.
        let most = 1.0 + COLD_MOST.get();
        assert!((factor(&runs(10_000, 1)) - most).abs() < 1e-9);
        // Long runs pay what the pause costs, their thread's and their core's.
        let expected = 1e6 / (1e6 - 2.0 * lost_ns(9_000_000));
        assert!((factor(&runs(10_000, 1_000)) - expected).abs() < 1e-9);
    }

    fn lost_ns(idle_ns: u64) -> f64 {
        let mut cold = Coldness::default();
        cold.idle(idle_ns);
        cold.pay_at_most(1e9)
    }

    #[test]
    fn each_thread_pays_for_its_absence_and_the_first_on_a_core_for_the_pause() {
        // Two threads, one after the other on one core, every 10 ms.
        let turns = (0..10).flat_map(|turn: u64| {
            [0, 1].map(|thread| {
                let start_us = turn * 10_000 + u64::from(thread) * 1_000;
                state(thread, (start_us, start_us + 1_000), StateKind::Cpu)
            })
        });
        let turns: Vec<State> = turns.collect();
        let paid_ns = 3.0 * lost_ns(8_000_000);
        let expected = 2e6 / (2e6 - paid_ns);
        assert!((factor(&turns) - expected).abs() < 1e-9);
    }

    #[test]
    fn what_threads_did_between_bursts_is_not_known() {
        let burst = |start_ns, end_ns| Burst {
            start_ns,
            end_ns,
            storage_cpu: None,
        };
        let runs = runs(10_000, 1_000);
        let each: Vec<Burst> = runs
            .iter()
            .map(|run| burst(run.start_ns, run.end_ns))
            .collect();
        assert!((mean_cold_factor(&runs, &each) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_a_run_cannot_pay_is_left_to_the_next() {
        let (mut thread, mut core) = (ThreadColdness::default(), Coldness::default());
        core.idle(10_000_000);
        thread.leave(0, 0);
        thread.resume(|_| 10_000_000);
        let first_ns = thread.pay(Some(&mut core), 1_000.0);
        assert!((first_ns - 1_000.0 * COLD_MOST.get()).abs() < 1e-9);
        let rest_ns = thread.pay(Some(&mut core), 1e9);
        assert!((first_ns + rest_ns - 2.0 * lost_ns(10_000_000)).abs() < 1e-6);
        assert!(thread.pay(Some(&mut core), 1e9).abs() < 1e-9);
    }

    #[test]
    fn warm_time_is_the_inverse_of_what_is_paid() {
        for warm_ns in [500.0, 20_000.0, 3_000_000.0] {
            let (mut thread, mut core) = (ThreadColdness::default(), Coldness::default());
            core.idle(2_000_000);
            thread.leave(0, 0);
            thread.resume(|_| 3_000_000);
            let (mut same_thread, mut same_core) = (thread, core);
            let ran_ns = warm_ns + thread.pay(Some(&mut core), warm_ns);
            assert!((same_thread.warm_ns(&mut same_core, ran_ns) - warm_ns).abs() < 1e-6);
        }
    }
}
