//! Several databases at once disturb each other on the devices that they share, and nowhere else.

use std::collections::BTreeMap;

use tierwise_device::{Library, Profile};
use tierwise_network::{Mode, Outcome, Program, Scenario, run_together};
use tierwise_work::{Grouping, Step};

use crate::support::{SECOND, all_on, cpu, memory, shipped, update, work};

const SPAN_NS: u64 = 5 * SECOND;

fn program(clients: u32, steps: &[Step]) -> Program {
    let work = work(clients, steps, Grouping::LeaderFollower);
    Program::new(work, &Library::default()).expect("it can be replayed")
}

/// All roles on one device, which every database names so shares.
fn shared_on(profile: Profile, seed: u64) -> Scenario {
    Scenario {
        shared: BTreeMap::from([(1, 0)]),
        ..all_on(profile, SPAN_NS, seed)
    }
}

fn rates(outcomes: &[Outcome]) -> Vec<u64> {
    outcomes.iter().map(|one| one.transactions).collect()
}

#[test]
fn one_database_alone_on_a_shared_device_runs_as_on_its_own() {
    let program = program(4, &update(100));
    for device in ["hdd-7k2", "ssd-nvme-dc", "ssd-sata-consumer"] {
        let own = all_on(shipped(device), SPAN_NS, 3);
        let shared = shared_on(shipped(device), 3);
        assert_eq!(
            run_together(&[(&program, own)]),
            run_together(&[(&program, shared)]),
            "{device}"
        );
    }
}

#[test]
fn databases_with_devices_of_their_own_do_not_disturb_each_other() {
    let (one, other) = (program(4, &update(100)), program(2, &update(300)));
    let alone = |program| {
        let own = all_on(shipped("hdd-7k2"), SPAN_NS, 1);
        run_together(&[(program, own)]).expect("it runs").remove(0)
    };
    let own = || all_on(shipped("hdd-7k2"), SPAN_NS, 1);
    let both = run_together(&[(&one, own()), (&other, own())]).expect("they run");
    assert_eq!(both, [alone(&one), alone(&other)]);
}

#[test]
fn databases_that_wait_for_one_device_get_like_shares_of_it() {
    let program = program(1, &update(100));
    let on = |databases: usize| {
        let scenario = || shared_on(shipped("ssd-sata-consumer"), 1);
        let all: Vec<_> = (0..databases).map(|_| (&program, scenario())).collect();
        rates(&run_together(&all).expect("they run"))
    };
    let alone = on(1)[0] as f64;
    for databases in [2, 4] {
        let shared = on(databases);
        let (least, most) = (shared.iter().min(), shared.iter().max());
        let (least, most) = (*least.expect("one") as f64, *most.expect("one") as f64);
        assert!(most < 0.8 * alone, "{shared:?} of {alone}");
        assert!(least > 0.5 * most, "{shared:?}: one starves");
        assert_eq!(shared, on(databases), "the same again");
    }
}

#[test]
fn a_device_that_is_never_busy_is_as_good_as_two() {
    let program = program(
        1,
        &[cpu(2_000), Step::Append { size_bytes: 600 }, Step::Commit],
    );
    let scenario = || shared_on(memory(20.0), 1);
    let alone = rates(&run_together(&[(&program, scenario())]).expect("it runs"))[0];
    let both = run_together(&[(&program, scenario()), (&program, scenario())]).expect("they run");
    for rate in rates(&both) {
        assert!(rate.abs_diff(alone) * 100 <= alone, "{rate} of {alone}");
    }
}

#[test]
fn work_that_is_done_once_and_a_device_that_is_full_are_refused_by_database() {
    let program = program(1, &update(100));
    let once = Scenario {
        mode: Mode::Once,
        ..shared_on(shipped("hdd-7k2"), 1)
    };
    let refused = run_together(&[
        (&program, shared_on(shipped("hdd-7k2"), 1)),
        (&program, once),
    ]);
    assert_eq!(refused.expect_err("it ends").0, 1);

    let gigabytes = shipped("hdd-7k2").capacity_bytes() / (1 << 30);
    let many = gigabytes as usize / 10;
    let all: Vec<_> = (0..many)
        .map(|_| (&program, shared_on(shipped("hdd-7k2"), 1)))
        .collect();
    let (index, error) = run_together(&all).expect_err("it is full");
    assert!(index > 1, "{index}");
    assert!(error.message.contains("holds"), "{}", error.message);
}
