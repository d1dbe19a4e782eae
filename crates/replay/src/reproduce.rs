//! The recorded run itself, to be got right before anything else is asked.

use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::many::replay_all;
use crate::program::Program;
use crate::question::Length;
use crate::{Mode, Outcome, ReplayError, Scenario};

/// Transactions of all clients from which on work is taken to go on rather than to end.
const STEADY_TRANSACTIONS: usize = 40;
/// The least time that is counted of work that goes on, and the most, in nanoseconds.
const SPANS_NS: (u64, u64) = (2_000_000_000, 60_000_000_000);

/// How the recorded run shall be computed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retrace {
    /// A run for each seed; at least one.
    pub seeds: Vec<u64>,
    /// Time that is counted of work that goes on; none for the recorded time.
    pub span_s: Option<f64>,
}

impl Retrace {
    /// Computes the recorded run, on `threads` threads; what comes out after `stop` was set is of no use.
    ///
    /// # Errors
    /// No seeds, or a span that is no time; as [`crate::replay`].
    pub fn run(
        &self,
        program: &Program,
        threads: usize,
        stop: &AtomicBool,
    ) -> Result<Reproduction, ReplayError> {
        let mode = match (recorded_mode(program), self.span_s) {
            (Mode::Steady { .. }, Some(span_s)) => Length::SteadyS(span_s).mode()?,
            (mode, _) => mode,
        };
        if self.seeds.is_empty() {
            return Err(ReplayError::new("no seeds are given", "give at least one"));
        }
        let seeds = self.seeds.iter();
        let recorded = seeds.map(|seed| Scenario::retraced(program, mode, *seed));
        let recorded: Vec<_> = recorded.collect();
        let freed = recorded.iter().map(|scenario| Scenario {
            traced: false,
            ..scenario.clone()
        });
        let scenarios: Vec<_> = freed.chain(recorded.iter().cloned()).collect();
        let outcomes = replay_all(program, &scenarios, threads, stop);
        let mut outcomes: Vec<_> = outcomes.into_iter().collect::<Result<_, _>>()?;
        let traced = outcomes.split_off(recorded.len().min(outcomes.len()));
        Ok(Reproduction::new(program, mode, outcomes, &traced))
    }
}

/// The recorded run as it was computed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reproduction {
    /// What comes out where nothing is recorded, for each seed.
    pub outcomes: Vec<Outcome>,
    /// Computed rate of transactions over the observed one, both with what recording costs, less 1; the mean of the
    /// seeds. Of turns where the recording shows no whole transaction; of times, turned round, for work that ends.
    pub error: f64,
    /// The same of the median latency, if the recording has one.
    pub latency_error: Option<f64>,
    /// The same of the 95th percentile.
    pub p95_error: Option<f64>,
    /// The same of the 99th.
    pub p99_error: Option<f64>,
}

/// Whether the recorded work goes on or ends, and for how long to count. One session that was recorded from its
/// first step to its last did what it did in an order, each part of it once, however many transactions that were.
#[must_use]
pub fn recorded_mode(program: &Program) -> Mode {
    let in_order = program.work.observed.whole && program.clients() == 1;
    if program.transactions() < STEADY_TRANSACTIONS || in_order {
        return Mode::Once;
    }
    let span_ns = program.work.observed.span_ns.clamp(SPANS_NS.0, SPANS_NS.1);
    Mode::Steady { span_ns }
}

impl Reproduction {
    /// Of outcomes without recording, and with it.
    fn new(program: &Program, mode: Mode, outcomes: Vec<Outcome>, traced: &[Outcome]) -> Self {
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
        }
    }
}

/// The rate of a run that is recorded over the observed one in bursts.
fn rate_over_observed(program: &Program, outcome: &Outcome, mode: Mode) -> f64 {
    let observed = &program.work.observed;
    let slowed = observed.rate_ratio.unwrap_or(1.0);
    let elapsed_s = outcome.elapsed_s.max(1e-9);
    if mode == Mode::Once {
        return observed.span_ns as f64 / 1e9 / elapsed_s;
    }
    if observed.transactions_per_s > 0.0 {
        return outcome.transactions as f64 / elapsed_s / (observed.transactions_per_s * slowed);
    }
    outcome.turns as f64 / elapsed_s / (observed.turns_per_s * slowed).max(1e-9)
}
