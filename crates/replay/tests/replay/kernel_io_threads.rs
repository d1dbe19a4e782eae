//! Storage's own time on the cores.

use tierwise_recording::Role;
use tierwise_replay::{EmulatedPath, Outcome, Scenario, replay};
use tierwise_work::{Grouping, RequestCost, Step, StorageCost, Work};

use crate::support::{SECOND, all_on, cpu, memory, memory_text, work};

fn answer(work: &Work, scenario: &Scenario) -> Outcome {
    replay(work, scenario).expect("a scenario that can be")
}

fn cost(request_us: f64) -> RequestCost {
    RequestCost {
        request_ns: request_us * 1e3,
        ..RequestCost::default()
    }
}

/// Clients that compute and read; a request costs the kernel and a server so much.
fn reading(clients: u32, kernel_us: f64, server_us: f64) -> Work {
    let read = Step::Read {
        role: Role::Data,
        sector: 0,
        sectors: 8,
    };
    recorded_on_emulated_disks(Work {
        storage: Some(StorageCost {
            kernel: cost(kernel_us),
            server: cost(server_us),
            path_ns: None,
        }),
        ..work(clients, &[cpu(100), read], Grouping::Alone)
    })
}

/// What requests cost is known of emulated disks.
fn recorded_on_emulated_disks(mut work: Work) -> Work {
    for device in &mut work.devices {
        device.profile = Some(memory_text(20.0));
    }
    work
}

fn on_one_core(latency_us: f64, live: bool) -> Scenario {
    Scenario {
        cores: 1,
        live: live.then_some(EmulatedPath { path_ns: 8000 }),
        ..all_on(memory(latency_us), SECOND, 1)
    }
}

#[test]
fn requests_take_their_time_of_a_busy_core() {
    let scenario = on_one_core(20.0, false);
    let per_turn_us = |work: &Work| {
        let outcome = answer(work, &scenario);
        outcome.elapsed_s * 1e6 / outcome.turns as f64
    };
    let on_real_device = |kernel_us| {
        let mut work = reading(8, kernel_us, 0.0);
        work.devices
            .iter_mut()
            .for_each(|device| device.profile = None);
        work
    };
    let free = per_turn_us(&on_real_device(0.0));
    let dear = per_turn_us(&on_real_device(50.0));
    let request_us = cost(50.0).of(8, (dear * 1e3) as u64) / 1e3;
    assert!((free - 100.0).abs() < 2.0, "{free}");
    assert!((dear - 100.0 - request_us).abs() < 3.0, "{dear}");
}

#[test]
fn an_emulated_disk_costs_its_server() {
    let work = reading(8, 20.0, 30.0);
    let turns = |live| {
        let outcome = answer(&work, &on_one_core(20.0, live));
        outcome.elapsed_s * 1e6 / outcome.turns as f64
    };
    let request_us = |us: f64, turn_us: f64| cost(us).of(8, (turn_us * 1e3) as u64) / 1e3;
    let plain = turns(false);
    // A real device in its place costs the interrupt of each request.
    assert!(
        (plain - 100.0 - request_us(2.0, plain)).abs() < 3.0,
        "{plain}"
    );
    let live = turns(true);
    let expected = 100.0 + request_us(50.0, live);
    assert!((live - expected).abs() < 5.0, "{live} for {expected}");
}

#[test]
fn an_emulated_disk_costs_the_usual_where_none_was_recorded() {
    let mut work = reading(8, 2.0, 3.0);
    work.devices
        .iter_mut()
        .for_each(|device| device.profile = None);
    let outcome = answer(&work, &on_one_core(20.0, true));
    let live_us = outcome.elapsed_s * 1e6 / outcome.turns as f64;
    // 36 µs of the kernel, 10 of the server.
    let request_us = cost(46.0).of(8, (live_us * 1e3) as u64) / 1e3;
    let expected_us = 100.0 + request_us;
    assert!(
        (live_us - expected_us).abs() < 5.0,
        "{live_us} for {expected_us}"
    );
}

#[test]
fn what_the_path_usually_takes_is_made_good() {
    for (kernel_us, server_us) in [(0.0, 0.0), (3.0, 3.0), (20.0, 8.0)] {
        let scenario = Scenario {
            cores: 2,
            ..on_one_core(20.0, true)
        };
        let outcome = answer(&reading(1, kernel_us, server_us), &scenario);
        let turn_us = outcome.elapsed_s * 1e6 / outcome.turns as f64;
        let cost_us = cost(kernel_us + server_us).of(0, (turn_us * 1e3) as u64) / 1e3;
        let expected = 100.0 + cost_us + 20.0 - 8.0;
        assert!((turn_us - expected).abs() < 0.5, "{turn_us} for {expected}");
    }
}

/// Sessions that write a mebibyte each again and again, of which a KiB costs a server so much, on two cores.
fn writes_us(sessions: u32, kib_us: f64) -> f64 {
    let write = Step::WriteThrough {
        role: Role::Data,
        sector: 0,
        sectors: 2048,
    };
    let work = recorded_on_emulated_disks(Work {
        storage: Some(StorageCost {
            kernel: cost(0.0),
            server: RequestCost {
                kib_ns: kib_us * 1e3,
                ..RequestCost::default()
            },
            path_ns: None,
        }),
        ..work(sessions, &[write], Grouping::Alone)
    });
    let scenario = Scenario {
        cores: 2,
        ..on_one_core(1000.0, true)
    };
    let outcome = answer(&work, &scenario);
    outcome.elapsed_s * 1e6 / outcome.turns as f64
}

#[test]
fn what_storage_has_to_copy_reaches_the_device_later() {
    let (quick, slow) = (writes_us(1, 0.0), writes_us(1, 2.0));
    // What follows an answer at once comes to a model whose clock is ahead by what is made good.
    assert!(
        (slow - quick - 2048.0 + 8.0).abs() < 1.0,
        "{slow} and {quick}"
    );
}

#[test]
fn a_store_takes_the_bytes_of_one_write_at_a_time() {
    // 20 ms for a mebibyte, 14 of them in the store: two cores do not make it 10.
    let each = writes_us(4, 20_000.0 / 1024.0);
    assert!((13_500.0..15_000.0).contains(&each), "{each}");
}
