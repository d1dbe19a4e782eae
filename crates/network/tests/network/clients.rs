//! Threads of client programs, each of which serves one session at a time.

use crate::support::{MS, SECOND, all_on, cpu, memory, work};
use tierwise_network::replay;
use tierwise_work::{Delay, Grouping, Step, Work};

/// Ten sessions on eight cores: 50 µs of the server, 100 µs of the client.
fn ten(client: impl Fn(u32) -> Option<u32>) -> Work {
    let asks = Step::Cpu {
        time_ns: 100_000,
        client: true,
    };
    let mut work = work(10, &[cpu(50), asks], Grouping::LeaderFollower);
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
    let work = work(1, &[away, cpu(100)], Grouping::Exclusive);
    let outcome = replay(&work, &all_on(memory(20.0), SECOND, 1)).expect("a sound work");
    let latency_us = outcome.latency.p50_us;
    assert!((99.0..110.0).contains(&latency_us), "{latency_us}");
    let rate = outcome.transactions as f64 / outcome.elapsed_s;
    assert!((900.0..920.0).contains(&rate), "{rate}");
}
