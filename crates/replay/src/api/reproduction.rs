//! The recorded run replayed, to validate a recording before anything else is predicted from it.

use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use tierwise_work::STEADY_TRANSACTIONS;

use crate::api::error::ReplayError;
use crate::api::outcome::Outcome;
use crate::api::parallel::replay_all;
use crate::api::scenario::{Mode, Scenario};
use crate::api::simulation_request::RunLength;
use crate::program::prepared::Program;

/// Least and most measured virtual time of steady work, in nanoseconds.
const SPANS_NS: (u64, u64) = (2_000_000_000, 60_000_000_000);
/// Least and most scale of processor time that the rate without recording may show. Chosen: recording costs half
/// of a transaction's processor time at most; slower than recorded is chance or a cost that no event shows.
const CPU_SCALES: (f64, f64) = (0.5, 1.25);
/// The logarithm of a rate within which the replay meets it.
const ANCHORED: f64 = 0.005;
const ANCHOR_STEPS: usize = 3;
/// Change of the rate's logarithm with that of processor time below which processor time does not decide it.
const LEAST_ELASTICITY: f64 = 0.3;

/// Outcomes of some scenarios, in order, or the first that cannot be.
type Replayed = Result<Vec<Outcome>, ReplayError>;

/// How to replay the recorded run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReproductionRequest {
    /// One run for each seed; at least one.
    pub seeds: Vec<u64>,
    /// Measured time of steady work; none for the recorded time.
    pub span_s: Option<f64>,
}

impl ReproductionRequest {
    /// Replays the recorded run on `threads` threads. The result is void once `stop` was set.
    ///
    /// # Errors
    ///
    /// No seeds, or an invalid time; as [`crate::replay`].
    pub fn run(
        &self,
        program: &Program,
        threads: usize,
        stop: &AtomicBool,
    ) -> Result<Reproduction, ReplayError> {
        let mode = match (recorded_mode(program), self.span_s) {
            (Mode::Steady { .. }, Some(span_s)) => RunLength::SteadyS(span_s).mode()?,
            (mode, _) => mode,
        };
        if self.seeds.is_empty() {
            return Err(ReplayError::new("no seeds are given", "give at least one"));
        }
        let seeds = self.seeds.iter();
        let recorded = seeds.map(|seed| Scenario::as_recorded(program, mode, *seed));
        let recorded: Vec<_> = recorded.collect();
        let replayed = |scenarios: &[Scenario]| replayed(program, scenarios, threads, stop);
        let mut reproduction = Reproduction::new(program, mode, replayed(&recorded)?);
        if mode != Mode::Once && program.work.observed.rate_ratio.is_some() {
            reproduction.anchor(program, mode, &recorded, replayed)?;
        }
        Ok(reproduction)
    }
}

/// The recorded run as replayed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reproduction {
    /// Outcomes with processor time scaled, one for each seed.
    pub outcomes: Vec<Outcome>,
    /// The same with processor time as recorded, to be compared with what was observed in bursts.
    pub recorded: Vec<Outcome>,
    /// Processor time without recording over that in bursts: found by the rate between bursts, which no event
    /// disturbs. 1 where that rate is not known, or processor time does not decide it.
    pub cpu_scale: f64,
    /// Rate of `outcomes` over the rate without recording, less 1; where that is not known, `error`.
    pub anchored_error: f64,
    /// Replayed rate of transactions over the observed one, both in bursts, less 1; mean of the seeds. Uses turns where the recording has no complete transaction; for work done once, observed time
    /// over replayed time.
    pub error: f64,
    /// The same for the median latency, if the recording has one.
    pub latency_error: Option<f64>,
    /// The same of the 95th percentile.
    pub p95_error: Option<f64>,
    /// The same of the 99th.
    pub p99_error: Option<f64>,
}

/// Whether recorded work repeats or is done once, and how long to measure. A single session recorded from its
/// first step to its last is done once, however many transactions it has, because its steps have an order.
#[must_use]
pub fn recorded_mode(program: &Program) -> Mode {
    let in_order = program.work.observed.whole && program.clients() == 1;
    if program.transactions() < STEADY_TRANSACTIONS || in_order {
        return Mode::Once;
    }
    let span_ns = program.work.observed.span_ns.clamp(SPANS_NS.0, SPANS_NS.1);
    Mode::Steady { span_ns }
}

/// Recorded time; of work done once, from its begin to its end: the rest of the recording was idle.
pub(crate) fn recorded_ns(program: &Program) -> u64 {
    let observed = &program.work.observed;
    match recorded_mode(program) {
        Mode::Once if observed.active_ns > 0 => observed.active_ns,
        _ => observed.span_ns,
    }
}

impl Reproduction {
    /// Built from outcomes with processor time as recorded.
    fn new(program: &Program, mode: Mode, recorded: Vec<Outcome>) -> Self {
        let mean = |figure: &dyn Fn(&Outcome) -> f64| {
            recorded.iter().map(figure).sum::<f64>() / recorded.len() as f64
        };
        let observed = &program.work.observed;
        let slowed = observed.rate_ratio.unwrap_or(1.0);
        let latency_error = |share: f64, figure: fn(&Outcome) -> f64| {
            let observed_us = program.observed_latency_us(share)? / slowed;
            Some(mean(&figure) / observed_us - 1.0)
        };
        Self {
            error: mean(&|outcome| rate_over_observed(program, outcome, mode)) - 1.0,
            latency_error: latency_error(0.5, |outcome| outcome.latency.p50_us),
            p95_error: latency_error(0.95, |outcome| outcome.latency.p95_us),
            p99_error: latency_error(0.99, |outcome| outcome.latency.p99_us),
            cpu_scale: 1.0,
            anchored_error: mean(&|outcome| rate_over_observed(program, outcome, mode)) - 1.0,
            outcomes: recorded.clone(),
            recorded,
        }
    }

    /// Finds the scale of processor time at which the replay meets the rate without recording.
    ///
    /// By secants in the logarithms of scale and rate, the first one as if processor time alone decided.
    /// Assumption: recording costs processor time alone, in proportion to all of it.
    fn anchor(
        &mut self,
        program: &Program,
        mode: Mode,
        recorded: &[Scenario],
        replayed: impl Fn(&[Scenario]) -> Replayed,
    ) -> Result<(), ReplayError> {
        let over = |outcomes: &[Outcome]| {
            let ratios = outcomes
                .iter()
                .map(|outcome| rate_over(program, outcome, mode, 1.0));
            ratios.sum::<f64>() / outcomes.len().max(1) as f64
        };
        let mut elasticity = 1.0;
        let mut excess = over(&self.outcomes).ln();
        for _ in 0..ANCHOR_STEPS {
            if !excess.is_finite() || excess.abs() < ANCHORED || elasticity < LEAST_ELASTICITY {
                break;
            }
            let scale = self.cpu_scale * (excess / elasticity).exp();
            let scale = scale.clamp(CPU_SCALES.0, CPU_SCALES.1);
            let step = (scale / self.cpu_scale).ln();
            if step.abs() < ANCHORED {
                break;
            }
            let outcomes = replayed(&scaled(recorded, scale))?;
            let found = over(&outcomes).ln();
            elasticity = (excess - found) / step;
            if elasticity >= LEAST_ELASTICITY {
                (self.cpu_scale, self.outcomes, excess) = (scale, outcomes, found);
            }
        }
        self.anchored_error = excess.exp() - 1.0;
        Ok(())
    }
}

/// The same scenarios with processor time scaled.
fn scaled(scenarios: &[Scenario], scale: f64) -> Vec<Scenario> {
    let scenarios = scenarios.iter();
    let scaled = scenarios.map(|scenario| Scenario {
        cpu_speed: 1.0 / scale,
        ..scenario.clone()
    });
    scaled.collect()
}

fn replayed(
    program: &Program,
    scenarios: &[Scenario],
    threads: usize,
    stop: &AtomicBool,
) -> Replayed {
    let outcomes = replay_all(program, scenarios, threads, stop);
    outcomes.into_iter().collect()
}

/// Rate of a run over the rate observed in bursts.
fn rate_over_observed(program: &Program, outcome: &Outcome, mode: Mode) -> f64 {
    let slowed = program.work.observed.rate_ratio.unwrap_or(1.0);
    rate_over(program, outcome, mode, slowed)
}

/// Rate of a run over the rate without recording times `slowed`.
fn rate_over(program: &Program, outcome: &Outcome, mode: Mode, slowed: f64) -> f64 {
    let observed = &program.work.observed;
    let elapsed_s = outcome.elapsed_s.max(1e-9);
    if mode == Mode::Once {
        return recorded_ns(program) as f64 / 1e9 / elapsed_s;
    }
    if observed.transactions_per_s > 0.0 {
        return outcome.transactions as f64 / elapsed_s / (observed.transactions_per_s * slowed);
    }
    outcome.turns as f64 / elapsed_s / (observed.turns_per_s * slowed).max(1e-9)
}
