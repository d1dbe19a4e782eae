//! Cores with a queue each, and threads that stay where they were recorded.

use tierwise_replay::replay;
use tierwise_work::{Delay, Grouping, Step, WakeupRules, Work};

use crate::support::{SECOND, all_on, cpu, memory, shipped, update, work};

/// Turns a second of clients that were all recorded on core 0 of two, 100 µs a turn and then a pause.
fn turns(wakes: WakeupRules) -> f64 {
    let pause = Step::Delay(Delay {
        time_ns: 1000,
        timer: false,
    });
    let mut work = Work {
        wakeups: wakes,
        ..work(4, &[cpu(100), pause], Grouping::Alone)
    };
    for session in &mut work.sessions {
        session.cores = vec![Some(0)];
    }
    let outcome = replay(&work, &all_on(memory(0.0), SECOND, 1)).expect("a scenario that can be");
    outcome.turns as f64 / outcome.elapsed_s
}

#[test]
fn threads_wait_for_their_core_though_another_idles_where_they_did() {
    let sticky = turns(WakeupRules::new(1.0, 1.0, 0));
    assert!((sticky - 10_000.0).abs() < 100.0, "{sticky}");
    for wakes in [WakeupRules::default(), WakeupRules::new(0.0, 1.0, 0)] {
        let spread = turns(wakes.clone());
        assert!((spread - 20_000.0).abs() < 500.0, "{spread} with {wakes:?}");
    }
    // A thread that moved wakes where it ran last: clients that move now and then stay spread.
    let some = turns(WakeupRules::new(0.9, 0.9, 0));
    assert!((some - 20_000.0).abs() < 500.0, "{some}");
}

#[test]
fn an_idle_core_takes_its_time_to_start_a_thread() {
    let commit_us = |starts_us: u32| {
        let work = Work {
            wakeups: WakeupRules::new(0.0, 0.0, starts_us * 1000),
            ..work(1, &update(100), Grouping::LeaderFollower)
        };
        let scenario = all_on(shipped("ssd-sata-consumer"), SECOND, 1);
        let outcome = replay(&work, &scenario).expect("a scenario that can be");
        outcome.elapsed_s * 1e6 / outcome.transactions as f64
    };
    // Two waits for the device: for the data, then for its flush.
    let longer_us = commit_us(40) - commit_us(0);
    assert!((60.0..100.0).contains(&longer_us), "{longer_us}");
}
