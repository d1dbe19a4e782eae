//! Transactions that arrive at a rate, whether those before are done or not.

use tierwise_network::{Outcome, ReplayMode, Scenario, replay};
use tierwise_work::{CommitGrouping, Delay, Step, Work};

use crate::support::{MS, SECOND, all_on, cpu, memory, update, work};

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
    replay(&work(2, &steps, CommitGrouping::LeaderFollower), &scenario).expect("it runs")
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
    let clients = work(2, &[think, cpu(1000)], CommitGrouping::LeaderFollower);
    let answer = replay(&clients, &scenario).expect("it runs");
    let rate = answer.transactions as f64 / answer.elapsed_s;
    assert!((90.0..110.0).contains(&rate), "{rate}");
}

#[test]
fn a_rate_that_is_none_is_refused() {
    let clients = work(2, &[cpu(1000)], CommitGrouping::LeaderFollower);
    for (rate_per_s, mode) in [
        (0.0, ReplayMode::Steady { span_ns: SECOND }),
        (f64::NAN, ReplayMode::Steady { span_ns: SECOND }),
        (10.0, ReplayMode::Once),
    ] {
        let scenario = Scenario {
            rate_per_s: Some(rate_per_s),
            mode,
            ..all_on(memory(20.0), SECOND, 1)
        };
        assert!(replay(&clients, &scenario).is_err(), "{rate_per_s}");
    }
}

// How long work that goes on is counted.

const CLIENTS: u32 = 4;

fn counted(enough: Option<u64>) -> Outcome {
    let work = work(CLIENTS, &update(200), CommitGrouping::LeaderFollower);
    let scenario = Scenario {
        enough,
        ..all_on(memory(300.0), 5 * SECOND, 1)
    };
    replay(&work, &scenario).expect("a scenario that can be")
}

#[test]
fn a_run_ends_with_enough_transactions_and_gives_the_same_rate() {
    let (whole, short) = (counted(None), counted(Some(2000)));
    assert!((2000..2000 + u64::from(CLIENTS)).contains(&short.transactions));
    assert!(whole.transactions > 10_000);
    let rate = |outcome: &Outcome| outcome.transactions as f64 / outcome.elapsed_s;
    let ratio = rate(&short) / rate(&whole);
    assert!((ratio - 1.0).abs() < 0.03, "{ratio}");
}

#[test]
fn a_run_ends_with_its_span_if_there_is_never_enough() {
    let (whole, long) = (counted(None), counted(Some(1_000_000)));
    assert_eq!(whole.transactions, long.transactions);
    assert!((long.elapsed_s - 5.0).abs() < 1e-9);
}

// Threads of client programs, each of which serves one session at a time.

/// Ten sessions on eight cores: 50 µs of the server, 100 µs of the client.
fn ten(client: impl Fn(u32) -> Option<u32>) -> Work {
    let asks = Step::Cpu {
        time_ns: 100_000,
        client: true,
    };
    let mut work = work(10, &[cpu(50), asks], CommitGrouping::LeaderFollower);
    for (index, session) in work.sessions.iter_mut().enumerate() {
        session.client = client(index as u32);
    }
    work
}

fn rate(work: &Work, clients: Option<u32>) -> f64 {
    let mut scenario = all_on(memory(0.0), SECOND, 1);
    (scenario.cores, scenario.clients) = (8, clients);
    let outcome = replay(work, &scenario).expect("a scenario that can be");
    outcome.transactions as f64 / outcome.elapsed_s
}

#[test]
fn one_thread_serves_one_session_at_a_time() {
    let shared = rate(&ten(|_| Some(7)), None);
    assert!((9_900.0..=10_100.0).contains(&shared), "{shared}");
    let two_threads = rate(&ten(|index| Some(index % 2)), None);
    assert!(
        (19_800.0..=20_200.0).contains(&two_threads),
        "{two_threads}"
    );
}

#[test]
fn threads_of_their_own_are_bound_by_cores_alone() {
    let own = rate(&ten(Some), None);
    let unknown = rate(&ten(|_| None), None);
    assert!((own / unknown - 1.0).abs() < 0.02, "{own} {unknown}");
    assert!((50_000.0..=53_400.0).contains(&own), "{own}");
}

#[test]
fn more_sessions_are_more_connections_of_the_same_threads() {
    let more = rate(&ten(|_| Some(0)), Some(20));
    assert!((9_900.0..=10_100.0).contains(&more), "{more}");
    let one_each = rate(&ten(Some), Some(5));
    assert!((one_each / (5.0 / 150e-6) - 1.0).abs() < 0.02, "{one_each}");
}

#[test]
fn a_transaction_begins_with_its_first_request() {
    let away = Step::Delay(Delay {
        time_ns: MS,
        timer: false,
    });
    let work = work(1, &[away, cpu(100)], CommitGrouping::Exclusive);
    let outcome = replay(&work, &all_on(memory(20.0), SECOND, 1)).expect("a sound work");
    let latency_us = outcome.latency.p50_us;
    assert!((99.0..110.0).contains(&latency_us), "{latency_us}");
    let rate = outcome.transactions as f64 / outcome.elapsed_s;
    assert!((900.0..920.0).contains(&rate), "{rate}");
}
