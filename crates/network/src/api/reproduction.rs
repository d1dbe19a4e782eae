//! The recorded run replayed, to validate a recording before anything else is predicted from it.

use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use tierwise_recording::UserError;
use tierwise_work::STEADY_TRANSACTIONS;

use crate::api::parallel::replay_all;
use crate::api::scenario::{Outcome, ReplayMode, Scenario};
use crate::api::simulation_request::RunLength;
use crate::program::Program;

/// Least and most measured virtual time of steady work, in nanoseconds.
const SPANS_NS: (u64, u64) = (2_000_000_000, 60_000_000_000);
/// Least and most scale of processor time that the rate without recording may show. Chosen: recording costs half
/// of a transaction's processor time at most; slower than recorded is chance or a cost that no event shows.
const CPU_SCALES: (f64, f64) = (0.5, 2.0);
/// The logarithm of a rate within which the replay meets it.
const ANCHORED: f64 = 0.005;
const ANCHOR_STEPS: usize = 3;
/// Change of the rate's logarithm with that of processor time below which processor time does not decide it.
const LEAST_ELASTICITY: f64 = 0.3;

/// Outcomes of some scenarios, in order, or the first that cannot be.
type ReplayedOutcomes = Result<Vec<Outcome>, UserError>;

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
    ) -> Result<Reproduction, UserError> {
        let mode = match (recorded_run_mode(program), self.span_s) {
            (ReplayMode::Steady { .. }, Some(span_s)) => RunLength::SteadyS(span_s).mode()?,
            (mode, _) => mode,
        };
        if self.seeds.is_empty() {
            return Err(UserError::new("no seeds are given", "give at least one"));
        }
        let seeds = self.seeds.iter();
        let recorded = seeds.map(|seed| Scenario::as_recorded(program, mode, *seed));
        let recorded: Vec<_> = recorded.collect();
        let replayed =
            |scenarios: &[Scenario]| replay_recorded_run(program, scenarios, threads, stop);
        let (cpu_scale, outcomes) = if mode != ReplayMode::Once {
            scale_cpu_to_rate(program, mode, &recorded, replayed)?
        } else {
            (1.0, replayed(&recorded)?)
        };
        Ok(Reproduction::new(program, mode, outcomes, cpu_scale))
    }
}

/// The recorded run as replayed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reproduction {
    /// Outcomes with processor time scaled, one for each seed.
    pub outcomes: Vec<Outcome>,
    /// Processor time without recording over that in bursts: found by the rate between bursts, which no event
    /// disturbs, or within them where that is not known; and by the server's processor time between them where processor
    /// time does not decide the rate. 1 for work done once.
    pub cpu_scale: f64,
    /// Replayed rate of transactions over that without recording, less 1; mean of the seeds. Uses turns where the
    /// recording has no complete transaction; for work done once, observed time over replayed time.
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
pub fn recorded_run_mode(program: &Program) -> ReplayMode {
    let in_order = program.work.observed.whole && program.clients() == 1;
    if program.transactions() < STEADY_TRANSACTIONS || in_order {
        return ReplayMode::Once;
    }
    let span_ns = program.work.observed.span_ns.clamp(SPANS_NS.0, SPANS_NS.1);
    ReplayMode::Steady { span_ns }
}

/// Recorded time; of work done once, from its begin to its end: the rest of the recording was idle.
pub(crate) fn recorded_run_ns(program: &Program) -> u64 {
    let observed = &program.work.observed;
    match recorded_run_mode(program) {
        ReplayMode::Once if observed.active_ns > 0 => observed.active_ns,
        _ => observed.span_ns,
    }
}

impl Reproduction {
    /// Compares outcomes with what was observed, less the cost of recording.
    fn new(program: &Program, mode: ReplayMode, outcomes: Vec<Outcome>, cpu_scale: f64) -> Self {
        let latency_error = |share: f64, figure: fn(&Outcome) -> f64| {
            let observed_us = program.observed_latency_us(share)?;
            Some(mean_of_outcomes(&outcomes, figure) / observed_us - 1.0)
        };
        Self {
            cpu_scale,
            error: rate_over_observed(program, mode, &outcomes) - 1.0,
            latency_error: latency_error(0.5, |outcome| outcome.latency.p50_us),
            p95_error: latency_error(0.95, |outcome| outcome.latency.p95_us),
            p99_error: latency_error(0.99, |outcome| outcome.latency.p99_us),
            outcomes,
        }
    }
}

/// Finds the scale of processor time at which the replay meets the rate without recording, or in bursts where that is not
/// known; gives it with the outcomes.
///
/// It begins with the ratio of the server's processor time, which the rate of a run that waits for its device does not
/// tell. By secants in the logarithms of scale and rate, the first one as if processor time alone decided.
/// Assumption: recording costs processor time alone, in proportion to all of it.
fn scale_cpu_to_rate(
    program: &Program,
    mode: ReplayMode,
    recorded: &[Scenario],
    replayed: impl Fn(&[Scenario]) -> ReplayedOutcomes,
) -> Result<(f64, Vec<Outcome>), UserError> {
    let mut scale = 1.0 / program.work.observed.cpu_ratio.unwrap_or(1.0);
    let mut outcomes = replayed(&scale_cpu_time(recorded, scale))?;
    let (mut elasticity, mut excess) = (1.0, rate_over_observed(program, mode, &outcomes).ln());
    for _ in 0..ANCHOR_STEPS {
        if !excess.is_finite() || excess.abs() < ANCHORED || elasticity < LEAST_ELASTICITY {
            break;
        }
        let next = scale * (excess / elasticity).exp();
        let next = next.clamp(CPU_SCALES.0, CPU_SCALES.1);
        let step = (next / scale).ln();
        if step.abs() < ANCHORED {
            break;
        }
        let tried = replayed(&scale_cpu_time(recorded, next))?;
        let left = rate_over_observed(program, mode, &tried).ln();
        elasticity = (excess - left) / step;
        if elasticity >= LEAST_ELASTICITY {
            (scale, outcomes, excess) = (next, tried, left);
        }
    }
    Ok((scale, outcomes))
}

/// The same scenarios with processor time scaled.
fn scale_cpu_time(scenarios: &[Scenario], scale: f64) -> Vec<Scenario> {
    let scenarios = scenarios.iter();
    let scaled = scenarios.map(|scenario| Scenario {
        cpu_speed: 1.0 / scale,
        ..scenario.clone()
    });
    scaled.collect()
}

fn replay_recorded_run(
    program: &Program,
    scenarios: &[Scenario],
    threads: usize,
    stop: &AtomicBool,
) -> ReplayedOutcomes {
    let outcomes = replay_all(program, scenarios, threads, stop);
    outcomes.into_iter().collect()
}

fn mean_of_outcomes(outcomes: &[Outcome], figure: impl Fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(figure).sum::<f64>() / outcomes.len().max(1) as f64
}

/// Rate of replayed runs over the one observed, less the cost of recording.
fn rate_over_observed(program: &Program, mode: ReplayMode, outcomes: &[Outcome]) -> f64 {
    let observed = &program.work.observed;
    mean_of_outcomes(outcomes, |outcome| {
        let elapsed_s = outcome.elapsed_s.max(1e-9);
        if mode == ReplayMode::Once {
            recorded_run_ns(program) as f64 / 1e9 / elapsed_s
        } else if observed.transactions_per_s > 0.0 {
            outcome.transactions as f64 / elapsed_s / observed.transactions_per_s
        } else {
            outcome.turns as f64 / elapsed_s / observed.turns_per_s.max(1e-9)
        }
    })
}
