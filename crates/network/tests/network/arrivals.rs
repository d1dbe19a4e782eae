//! Transactions that arrive at a rate, whether those before are done or not.

use tierwise_network::{Mode, Outcome, Scenario, replay};
use tierwise_work::{Delay, Grouping, Step};

use crate::support::{MS, SECOND, all_on, cpu, memory, work};

/// 100 transactions a second at most: two sessions of 20 ms, of which 1 ms is processor time.
fn answered(rate_per_s: f64) -> Outcome {
    let steps = [
        cpu(1000),
        Step::Delay(Delay {
            time_ns: 19 * MS,
            timer: true,
        }),
    ];
    let scenario = Scenario {
        rate_per_s: Some(rate_per_s),
        ..all_on(memory(20.0), 20 * SECOND, 1)
    };
    replay(&work(2, &steps, Grouping::LeaderFollower), &scenario).expect("it runs")
}

#[test]
fn as_many_are_done_as_arrive() {
    let answer = answered(40.0);
    let rate = answer.transactions as f64 / answer.elapsed_s;
    assert!((35.0..45.0).contains(&rate), "{rate}");
    assert!(answer.waiting <= 5, "{}", answer.waiting);
    assert!(answer.latency.p50_us >= 20_000.0);
}

#[test]
fn latency_rises_with_the_rate() {
    let quiet = answered(5.0).latency;
    let busy = answered(85.0).latency;
    assert!(quiet.p50_us < 21_000.0, "{}", quiet.p50_us);
    assert!(busy.p50_us > 1.5 * quiet.p50_us, "{}", busy.p50_us);
}

#[test]
fn beyond_the_limit_they_wait() {
    let answer = answered(150.0);
    let rate = answer.transactions as f64 / answer.elapsed_s;
    assert!((90.0..=101.0).contains(&rate), "{rate}");
    assert!(answer.waiting > 500, "{}", answer.waiting);
}

#[test]
fn think_time_between_transactions_is_left_out() {
    let think = Step::Delay(Delay {
        time_ns: SECOND,
        timer: false,
    });
    let scenario = Scenario {
        rate_per_s: Some(100.0),
        ..all_on(memory(20.0), 20 * SECOND, 1)
    };
    let clients = work(2, &[think, cpu(1000)], Grouping::LeaderFollower);
    let answer = replay(&clients, &scenario).expect("it runs");
    let rate = answer.transactions as f64 / answer.elapsed_s;
    assert!((90.0..110.0).contains(&rate), "{rate}");
}

#[test]
fn a_rate_that_is_none_is_refused() {
    let clients = work(2, &[cpu(1000)], Grouping::LeaderFollower);
    for (rate_per_s, mode) in [
        (0.0, Mode::Steady { span_ns: SECOND }),
        (f64::NAN, Mode::Steady { span_ns: SECOND }),
        (10.0, Mode::Once),
    ] {
        let scenario = Scenario {
            rate_per_s: Some(rate_per_s),
            mode,
            ..all_on(memory(20.0), SECOND, 1)
        };
        assert!(replay(&clients, &scenario).is_err(), "{rate_per_s}");
    }
}
