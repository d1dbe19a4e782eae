//! What recording a run costs it.

use std::sync::atomic::AtomicBool;

use tierwise_device::ProfileLibrary;
use tierwise_network::{Program, Reproduction, ReproductionRequest};
use tierwise_work::{CommitGrouping, Delay, ObservedFigures, Step, Work};

use crate::support::work;

/// The recorded run of two clients, and the rate without recording.
fn reproduced(step: &[Step], rate_per_s: f64) -> Reproduction {
    reproduced_at(step, rate_per_s, Some(0.8), None)
}

/// The same, with the ratios of rate and processor time with recording to those without.
fn reproduced_at(
    step: &[Step],
    rate_per_s: f64,
    rate_ratio: Option<f64>,
    cpu_ratio: Option<f64>,
) -> Reproduction {
    let observed = ObservedFigures {
        transactions_per_s: rate_per_s,
        rate_ratio,
        cpu_ratio,
        ..ObservedFigures::default()
    };
    let work = Work {
        observed,
        ..work(2, step, CommitGrouping::Alone)
    };
    let program = Program::new(work, &ProfileLibrary::default()).expect("work that can be run");
    let retrace = ReproductionRequest {
        seeds: vec![1],
        span_s: Some(1.0),
    };
    let found = retrace.run(&program, 1, &AtomicBool::new(false));
    found.expect("a run that can be")
}

const RUN: Step = Step::Cpu {
    time_ns: 100_000,
    client: false,
};

#[test]
fn processor_time_is_scaled_until_the_rate_without_recording_is_met() {
    let found = reproduced(&[RUN], 25_000.0);
    assert!((found.cpu_scale - 0.8).abs() < 0.01, "{}", found.cpu_scale);
    assert!(found.error.abs() < 0.01, "{}", found.error);
    let shown = &found.outcomes[0];
    let rate = shown.transactions as f64 / shown.elapsed_s;
    assert!((rate / 25_000.0 - 1.0).abs() < 0.01, "{rate}");
}

#[test]
fn where_recording_costs_an_unknown_share_the_rate_in_bursts_is_met() {
    let found = reproduced_at(&[RUN], 16_000.0, None, None);
    assert!((found.cpu_scale - 1.25).abs() < 0.01, "{}", found.cpu_scale);
    assert!(found.error.abs() < 0.01, "{}", found.error);
}

#[test]
fn processor_time_that_does_not_decide_the_rate_is_not_scaled() {
    let away = Step::Delay(Delay {
        time_ns: 10_000_000,
        timer: true,
    });
    let found = reproduced(&[RUN, away], 220.0);
    assert_eq!(found.cpu_scale, 1.0);
    assert!((found.error + 0.1).abs() < 0.01, "{}", found.error);
}

#[test]
fn processor_time_between_bursts_scales_a_run_whose_rate_does_not_tell() {
    let away = Step::Delay(Delay {
        time_ns: 10_000_000,
        timer: true,
    });
    let found = reproduced_at(&[RUN, away], 198.0, Some(0.8), Some(1.25));
    assert!((found.cpu_scale - 0.8).abs() < 1e-9, "{}", found.cpu_scale);
}

#[test]
fn processor_time_is_not_scaled_beyond_what_recording_can_cost() {
    let found = reproduced(&[RUN], 100_000.0);
    assert_eq!(found.cpu_scale, 0.5);
    assert!((found.error + 0.6).abs() < 0.01, "{}", found.error);
}
