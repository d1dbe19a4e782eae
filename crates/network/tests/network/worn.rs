//! New devices are as long use leaves them where that is asked for; the recorded ones stay as they were.

use tierwise_device::Library;
use tierwise_network::{Mode, Program, Scenario, replay};
use tierwise_work::{Grouping, Step};

use crate::support::{SECOND, all_on, cpu, memory, shipped, update, work};

const SPAN_NS: u64 = 5 * SECOND;

#[test]
fn commits_of_a_consumer_ssd_are_slower_after_long_use() {
    let commits = work(4, &update(100), Grouping::LeaderFollower);
    let rate = |worn| {
        let scenario = Scenario {
            worn,
            ..all_on(shipped("ssd-nvme-consumer"), SPAN_NS, 0)
        };
        replay(&commits, &scenario).expect("it runs").transactions
    };
    let (fresh, worn) = (rate(false), rate(true));
    assert!(worn < fresh, "{worn} of {fresh}");
    assert_eq!(worn, rate(true), "the same again");
}

#[test]
fn what_does_not_wear_and_what_was_recorded_stay_as_they_were() {
    let commits = work(4, &update(100), Grouping::LeaderFollower);
    for scenario in [
        all_on(memory(20.0), SPAN_NS, 0),
        Scenario::recorded(1, 2, Mode::Steady { span_ns: SPAN_NS }, 0),
    ] {
        let worn = Scenario {
            worn: true,
            ..scenario.clone()
        };
        assert_eq!(replay(&commits, &worn), replay(&commits, &scenario));
    }
}

#[test]
fn demands_are_what_a_transaction_asks() {
    let steps = [
        cpu(300),
        Step::Cpu {
            time_ns: 50_000,
            client: true,
        },
        Step::Delay(tierwise_work::Delay {
            time_ns: 2_000_000,
            timer: false,
        }),
    ];
    let program = Program::new(
        work(4, &steps, Grouping::LeaderFollower),
        &Library::default(),
    );
    let found = program.expect("sound work").summary().demands;
    let about = |found: f64, expected: f64| {
        assert!(
            (found / expected - 1.0).abs() < 0.01,
            "{found} for {expected}"
        );
    };
    about(found.think_us, 2000.0);
    about(found.client_cpu_us, 50.0);
    about(found.server_cpu_us, 300.0);
}
