//! Threads that wake take cores from those that run there, as often as recorded.

use tierwise_replay::replay;
use tierwise_work::{Delay, Grouping, PreemptionRules, Step, Waker, Work};

use crate::support::{SECOND, all_on, cpu, memory, session, work};

/// Turns a second of a session that runs 10 µs after each pause of 90, beside one that never pauses, on one core: who
/// wakes takes that in such a share of cases, so late, whoever wakes it.
fn turns(takes: f64, takes_us: u64) -> f64 {
    turns_by([[takes; 2]; 3], takes_us)
}

/// The same, by who wakes it.
fn turns_by(takes: [[f64; 2]; 3], takes_us: u64) -> f64 {
    let pause = Step::Delay(Delay {
        time_ns: 90_000,
        timer: true,
    });
    let mut work = Work {
        cores: 1,
        preemption: PreemptionRules {
            preempt_share: takes,
            preempt_after_ns: [takes_us * 1000; 3],
            ..PreemptionRules::default()
        },
        ..work(1, &[cpu(10), pause], Grouping::Alone)
    };
    let mut busy = session("busy", 4, &[cpu(5000)]);
    busy.turns.iter_mut().for_each(|turn| turn.ends = false);
    work.sessions.push(busy);
    let mut scenario = all_on(memory(0.0), SECOND, 1);
    scenario.cores = 1;
    let outcome = replay(&work, &scenario).expect("a scenario that can be");
    assert!(outcome.busy_share > 0.99, "{}", outcome.busy_share);
    outcome.transactions as f64 / outcome.elapsed_s
}

#[test]
fn who_wakes_does_not_wait_for_the_end_of_a_slice_where_it_takes_the_core() {
    let [waits, takes_late, takes] = [turns(0.0, 0), turns(1.0, 100), turns(1.0, 0)];
    assert!(waits < 2000.0, "{waits}");
    assert!((takes - 10_000.0).abs() < 200.0, "{takes}");
    assert!((takes_late - 5_000.0).abs() < 200.0, "{takes_late}");
    let some = turns(0.5, 0);
    assert!(waits < some && some < takes, "{some}");
}

#[test]
fn whom_a_timer_wakes_takes_the_core_as_whom_the_kernel_wakes() {
    let takes = |waker: Waker| {
        let mut takes = [[0.0; 2]; 3];
        takes[waker as usize] = [1.0; 2];
        turns_by(takes, 0)
    };
    assert!(takes(Waker::Kernel) > 9_000.0 && takes(Waker::Another) < 2_000.0);
}

#[test]
fn who_lost_a_core_has_it_again_by_its_weight() {
    let turns = |preempted_weight: f64| {
        let picks = PreemptionRules {
            preempt_share: [[0.5; 2]; 3],
            preempted_weight,
            fifo_share: 0.0,
            ..PreemptionRules::default()
        };
        let work = Work {
            cores: 1,
            preemption: picks,
            ..work(6, &[cpu(200)], Grouping::Alone)
        };
        let mut scenario = all_on(memory(0.0), SECOND, 1);
        scenario.cores = 1;
        let outcome = replay(&work, &scenario).expect("a scenario that can be");
        outcome.turns
    };
    // However they share it, a core does no more than it can.
    for preempted_weight in [0.01, 1.0, 100.0] {
        assert!(
            turns(preempted_weight).abs_diff(5000) < 60,
            "{}",
            turns(preempted_weight)
        );
    }
}
