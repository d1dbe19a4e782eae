//! Cores: servers of one queue.

use tierwise_network::replay;
use tierwise_work::constants::{COLD_MOST, HANDED_OVER_NS};
use tierwise_work::{ColdCoreCost, CommitGrouping, Delay, Step, Work};

use crate::support::{SECOND, all_on, cpu, exponential, memory, work};

/// Rate of a station with so many servers, by its birth-death chain: customers each away for a time, then served for
/// another, both exponential.
fn closed_rate(customers: u32, away_s: f64, service_s: f64, servers: u32) -> f64 {
    let mut weights = vec![1.0];
    for present in 1..=customers {
        let arrive = f64::from(customers - present + 1) / away_s;
        let leave = f64::from(present.min(servers)) / service_s;
        weights.push(weights[present as usize - 1] * arrive / leave);
    }
    let sum: f64 = weights.iter().sum();
    let served = |(present, weight): (usize, &f64)| {
        weight / sum * f64::from((present as u32).min(servers)) / service_s
    };
    weights.iter().enumerate().map(served).sum()
}

/// Rate of customers that are away and then need a core, each time for another time.
fn replayed_rate(customers: u32, away_ns: f64, service_ns: f64, cores: u32) -> f64 {
    const TURNS: u32 = 20_000;
    let mut made = work(customers, &[cpu(1), cpu(1)], CommitGrouping::Alone);
    for (number, session) in (0..).zip(&mut made.sessions) {
        let away = exponential(away_ns, TURNS, number);
        let needs = exponential(service_ns, TURNS, number + 100);
        let turns = crate::support::session("", TURNS, &[cpu(1), cpu(1)]).turns;
        let steps = away.iter().zip(&needs).flat_map(|(&time_ns, &run_ns)| {
            let delay = Step::Delay(Delay {
                time_ns,
                timer: false,
            });
            let run = Step::Cpu {
                time_ns: run_ns as u32,
                client: false,
            };
            [delay, run]
        });
        (session.steps, session.turns) = (steps.collect(), turns);
    }
    let mut scenario = all_on(memory(0.0), 40 * SECOND, 1);
    scenario.cores = cores;
    let outcome = replay(&made, &scenario).expect("a scenario that can be");
    outcome.turns as f64 / outcome.elapsed_s
}

#[test]
fn cores_give_the_rate_of_a_birth_death_chain() {
    for (customers, cores, away_us, service_us) in [
        (4, 2, 300.0, 100.0),
        (20, 2, 2_000.0, 150.0),
        (3, 1, 50.0, 100.0),
    ] {
        let rate = replayed_rate(customers, away_us * 1e3, service_us * 1e3, cores);
        let exact = closed_rate(customers, away_us * 1e-6, service_us * 1e-6, cores);
        assert!((rate / exact - 1.0).abs() < 0.01, "{rate} for {exact}");
    }
}

#[test]
fn a_long_run_gives_way_after_its_slice() {
    let mut made = work(2, &[cpu(100)], CommitGrouping::Alone);
    made.sessions[1] = crate::support::session("long", 10, &[cpu(50_000)]);
    let mut scenario = all_on(memory(0.0), 4 * SECOND, 1);
    scenario.cores = 1;
    let outcome = replay(&made, &scenario).expect("a scenario that can be");
    // Slices of 0.75 ms in turn: the short runs get half of the core.
    let rate = outcome.turns as f64 / outcome.elapsed_s;
    assert!((1_000.0..=5_200.0).contains(&rate), "{rate}");
}

#[test]
fn a_run_costs_more_on_a_core_that_was_idle_and_as_much_as_recorded_in_the_recorded_run() {
    let pause = Step::Delay(Delay {
        time_ns: 10_000_000,
        timer: false,
    });
    let turn_us = |cold_factor: Option<f64>| {
        let made = Work {
            cold_factor,
            ..work(1, &[cpu(100), pause], CommitGrouping::Alone)
        };
        let outcome = replay(&made, &all_on(memory(0.0), 20 * SECOND, 1)).expect("sound work");
        2.0 * outcome.busy_share * outcome.elapsed_s * 1e6 / outcome.turns as f64
    };
    let mut pause = ColdCoreCost::default();
    pause.idle(10_000_000);
    let cold = 1.0 + pause.pay(100_000.0) / 100_000.0;
    assert!((1.4..1.0 + COLD_MOST.get()).contains(&cold), "{cold}");
    assert!((turn_us(None) - 100.0).abs() < 1.0);
    assert!((turn_us(Some(1.0)) - 100.0 * cold).abs() < 1.0);
    let warm = 100.0 / 1.5;
    let mut pause = ColdCoreCost::default();
    pause.idle(10_000_000);
    let expected = warm + pause.pay(warm * 1e3) / 1e3;
    assert!((turn_us(Some(1.5)) - expected).abs() < 1.0);
}

/// Time of a turn of one client whose server answers ten requests and then waits for a device.
fn turn_us(cores: u32, device_us: f64) -> f64 {
    let client = Step::Cpu {
        time_ns: 5_000,
        client: true,
    };
    let wait = Step::Delay(Delay {
        time_ns: (device_us * 1e3) as u64,
        timer: false,
    });
    let mut steps = [cpu(20), client].repeat(10);
    steps.push(wait);
    let made = Work {
        cold_factor: Some(1.0),
        ..work(1, &steps, CommitGrouping::Alone)
    };
    let mut scenario = all_on(memory(0.0), 20 * SECOND, 1);
    scenario.cores = cores;
    let outcome = replay(&made, &scenario).expect("sound work");
    outcome.elapsed_s * 1e6 / outcome.turns as f64
}

#[test]
fn threads_that_wake_each_other_stay_on_one_core_until_cores_are_loaded() {
    let handed_over_us = HANDED_OVER_NS.get() as f64 / 1e3;
    // The core is idle for most of the time: a second one changes nothing.
    assert!((turn_us(2, 5_000.0) - turn_us(1, 5_000.0)).abs() < 1.0);
    // It is busy for most of the time: both threads have a core, each of 20 hand-overs wakes one, and its pauses cost.
    let later_us = turn_us(2, 50.0) - turn_us(1, 50.0);
    let cold_us = later_us - 20.0 * handed_over_us;
    assert!((0.0..=90.0).contains(&cold_us), "{later_us}");
}

/// Rate of customers at one core by mean-value analysis (Reiser, Lavenberg, Journal of the ACM 27, 1980): an arriving
/// customer meets the queue of a network with one customer less.
fn mean_value_rate(customers: u32, away_s: f64, service_s: f64) -> f64 {
    let step = |(_, queue): (f64, f64), present: u32| {
        let waits_s = service_s * (1.0 + queue);
        let rate = f64::from(present) / (away_s + waits_s);
        (rate, rate * waits_s)
    };
    (1..=customers).fold((0.0, 0.0), step).0
}

#[test]
fn one_core_gives_the_rate_of_mean_value_analysis() {
    for (customers, away_us, service_us) in [(2, 200.0, 100.0), (8, 1_500.0, 150.0)] {
        let rate = replayed_rate(customers, away_us * 1e3, service_us * 1e3, 1);
        let exact = mean_value_rate(customers, away_us * 1e-6, service_us * 1e-6);
        assert!((rate / exact - 1.0).abs() < 0.01, "{rate} for {exact}");
    }
}
