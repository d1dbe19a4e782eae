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
        let freed = recorded.iter().map(|scenario| Scenario {
            traced: false,
            ..scenario.clone()
        });
        let scenarios: Vec<_> = freed.chain(recorded.iter().cloned()).collect();
        let outcomes = replay_all(program, &scenarios, threads, stop);
        let mut outcomes: Vec<_> = outcomes.into_iter().collect::<Result<_, _>>()?;
        let traced = outcomes.split_off(recorded.len().min(outcomes.len()));
        Ok(Reproduction::new(program, mode, outcomes, traced))
    }
}

/// The recorded run as replayed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reproduction {
    /// Outcomes without tracing overhead, one for each seed.
    pub outcomes: Vec<Outcome>,
    /// The same with tracing overhead, to be compared with observed values.
    pub traced: Vec<Outcome>,
    /// Replayed rate of transactions over the observed one, both with tracing overhead, less 1; mean of the
    /// seeds. Uses turns where the recording has no complete transaction; for work done once, observed time
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
    /// Built from outcomes without tracing overhead, and with it.
    fn new(program: &Program, mode: Mode, outcomes: Vec<Outcome>, traced: Vec<Outcome>) -> Self {
        let mean = |figure: &dyn Fn(&Outcome) -> f64| {
            traced.iter().map(figure).sum::<f64>() / traced.len() as f64
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
            outcomes,
            traced,
        }
    }
}

/// Rate of a traced run over the rate observed in bursts.
fn rate_over_observed(program: &Program, outcome: &Outcome, mode: Mode) -> f64 {
    let observed = &program.work.observed;
    let slowed = observed.rate_ratio.unwrap_or(1.0);
    let elapsed_s = outcome.elapsed_s.max(1e-9);
    if mode == Mode::Once {
        return recorded_ns(program) as f64 / 1e9 / elapsed_s;
    }
    if observed.transactions_per_s > 0.0 {
        return outcome.transactions as f64 / elapsed_s / (observed.transactions_per_s * slowed);
    }
    outcome.turns as f64 / elapsed_s / (observed.turns_per_s * slowed).max(1e-9)
}
