//! What recording a run costs it.

use std::sync::atomic::AtomicBool;

use tierwise_device::Library;
use tierwise_replay::{Program, ReproductionRequest, Scenario, replay};
use tierwise_work::{Grouping, Observed, Step, Work};

use crate::support::{SECOND, all_on, memory, work};

/// Two clients on two cores: 100 µs a turn, and 25 that recording took.
fn recorded() -> Work {
    let step = Step::Cpu {
        time_ns: 100_000,
        after_wait_ns: 0,
        client: false,
        traced_ns: 25_000,
        core: 0,
        head_start_ns: 0,
    };
    work(2, &[step], Grouping::Alone)
}

#[test]
fn a_run_that_is_recorded_takes_longer_by_what_recording_takes() {
    let turn_us = |traced| {
        let scenario = Scenario {
            traced,
            ..all_on(memory(0.0), SECOND, 1)
        };
        let outcome = replay(&recorded(), &scenario).expect("a scenario that can be");
        2e6 * outcome.elapsed_s / outcome.turns as f64
    };
    assert!((turn_us(false) - 100.0).abs() < 0.5);
    assert!((turn_us(true) - 125.0).abs() < 0.5);
}

#[test]
fn the_recorded_run_is_reproduced_with_recording_and_shown_without() {
    let observed = |rate_per_s, rate_ratio| Observed {
        transactions_per_s: rate_per_s,
        rate_ratio,
        ..Observed::default()
    };
    // What the bursts counted is 16,000 a second, whether or not the rate without recording is known.
    for observed in [observed(20_000.0, Some(0.8)), observed(16_000.0, None)] {
        let work = Work {
            observed,
            ..recorded()
        };
        let program = Program::new(work, &Library::default()).expect("work that can be run");
        let retrace = ReproductionRequest {
            seeds: vec![1],
            span_s: Some(1.0),
        };
        let found = retrace.run(&program, 1, &AtomicBool::new(false));
        let found = found.expect("a run that can be");
        assert!(found.error.abs() < 0.01, "{}", found.error);
        let shown = &found.outcomes[0];
        let rate = shown.transactions as f64 / shown.elapsed_s;
        assert!((rate / 20_000.0 - 1.0).abs() < 0.01, "{rate}");
    }
}
