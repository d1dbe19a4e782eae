//! Several databases at once disturb each other on the devices that they share, and nowhere else.

use std::collections::BTreeMap;

use tierwise_device::volume::{InstanceBurst, InstanceLimits};
use tierwise_device::{Profile, ProfileLibrary};
use tierwise_network::{
    InstanceScenario, Outcome, Program, ReplayMode, Scenario, replay, run_scenarios_together,
};
use tierwise_recording::Role;
use tierwise_work::{CommitGrouping, Step, Work};

use crate::support::{SECOND, all_on, close, cpu, memory, shipped, update, work};

const SPAN_NS: u64 = 5 * SECOND;

fn program(clients: u32, steps: &[Step]) -> Program {
    let work = work(clients, steps, CommitGrouping::LeaderFollower);
    Program::new(work, &ProfileLibrary::default()).expect("it can be replayed")
}

/// All roles on one device, which every database names so shares.
fn shared_on(profile: Profile, seed: u64) -> Scenario {
    Scenario {
        shared: BTreeMap::from([(1, 0)]),
        ..all_on(profile, SPAN_NS, seed)
    }
}

fn rates(outcomes: &[Outcome]) -> Vec<u64> {
    outcomes
        .iter()
        .map(|outcome| outcome.transactions)
        .collect()
}

#[test]
fn one_database_alone_on_a_shared_device_runs_as_on_its_own() {
    let program = program(4, &update(100));
    for device in ["hdd-7k2", "ssd-nvme-dc", "ssd-sata-consumer"] {
        let own = all_on(shipped(device), SPAN_NS, 3);
        let shared = shared_on(shipped(device), 3);
        assert_eq!(
            run_scenarios_together(&[(&program, own)]),
            run_scenarios_together(&[(&program, shared)]),
            "{device}"
        );
    }
}

#[test]
fn databases_with_devices_of_their_own_do_not_disturb_each_other() {
    let (one, other) = (program(4, &update(100)), program(2, &update(300)));
    let alone = |program| {
        let own = all_on(shipped("hdd-7k2"), SPAN_NS, 1);
        run_scenarios_together(&[(program, own)])
            .expect("it runs")
            .remove(0)
    };
    let own = || all_on(shipped("hdd-7k2"), SPAN_NS, 1);
    let both = run_scenarios_together(&[(&one, own()), (&other, own())]).expect("they run");
    assert_eq!(both, [alone(&one), alone(&other)]);
}

#[test]
fn databases_that_wait_for_one_device_get_like_shares_of_it() {
    let program = program(1, &update(100));
    let on = |databases: usize| {
        let scenario = || shared_on(shipped("ssd-sata-consumer"), 1);
        let all: Vec<_> = (0..databases).map(|_| (&program, scenario())).collect();
        rates(&run_scenarios_together(&all).expect("they run"))
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
    let alone = rates(&run_scenarios_together(&[(&program, scenario())]).expect("it runs"))[0];
    let both = run_scenarios_together(&[(&program, scenario()), (&program, scenario())])
        .expect("they run");
    for rate in rates(&both) {
        assert!(rate.abs_diff(alone) * 100 <= alone, "{rate} of {alone}");
    }
}

#[test]
fn work_that_is_done_once_and_a_device_that_is_full_are_refused_by_database() {
    let program = program(1, &update(100));
    let once = Scenario {
        mode: ReplayMode::Once,
        ..shared_on(shipped("hdd-7k2"), 1)
    };
    let refused = run_scenarios_together(&[
        (&program, shared_on(shipped("hdd-7k2"), 1)),
        (&program, once),
    ]);
    assert_eq!(refused.expect_err("it ends").0, 1);

    let gigabytes = shipped("hdd-7k2").capacity_bytes() / (1 << 30);
    let many = gigabytes as usize / 10;
    let all: Vec<_> = (0..many)
        .map(|_| (&program, shared_on(shipped("hdd-7k2"), 1)))
        .collect();
    let (index, error) = run_scenarios_together(&all).expect_err("it is full");
    assert!(index > 1, "{index}");
    assert!(error.message.contains("holds"), "{}", error.message);
}

// A machine's limits hold for all its network volumes together, and for nothing else.

fn limited(limits: InstanceLimits) -> InstanceScenario {
    InstanceScenario {
        limits,
        recorded: Vec::new(),
    }
}

fn limits(iops: f64) -> InstanceScenario {
    limited(InstanceLimits {
        iops,
        mb_per_s: 1000.0,
        burst: None,
    })
}

/// Clients that only read, half of them temporary files.
fn readers() -> Work {
    let read = |role| Step::Read {
        role,
        sector: 0,
        sectors: 8,
    };
    work(
        64,
        &[read(Role::Data), read(Role::Temp), cpu(4)],
        CommitGrouping::LeaderFollower,
    )
}

/// Data and temporary files each on a device of this kind.
fn two(profile: &str, instance: Option<InstanceScenario>) -> Scenario {
    Scenario {
        devices: vec![None, Some(shipped(profile)), Some(shipped(profile))],
        placement: vec![(Role::Data, 1), (Role::Temp, 2)],
        instance,
        worn: true,
        ..all_on(shipped(profile), SPAN_NS, 1)
    }
}

/// I/Os a second of all roles.
fn iops(scenario: &Scenario) -> f64 {
    let outcome = replay(&readers(), scenario).expect("it runs");
    let reads: u64 = outcome.io.iter().map(|role| role.reads).sum();
    reads as f64 / outcome.elapsed_s
}

#[test]
fn two_volumes_share_the_limit_of_their_machine() {
    let volume = "volume-aws-io2";
    let alone = iops(&two(volume, None));
    assert!(alone > 20_000.0, "{alone}");
    close(iops(&two(volume, Some(limits(4000.0)))), 4000.0, 0.01);
}

#[test]
fn a_local_device_has_no_part_in_it() {
    let local = two("ssd-nvme-dc", None);
    let behind = two("ssd-nvme-dc", Some(limits(10.0)));
    assert_eq!(replay(&readers(), &local), replay(&readers(), &behind));
}

#[test]
fn limits_beyond_the_load_change_nothing() {
    let wide = limited(InstanceLimits {
        mb_per_s: 1e8,
        ..limits(1e8).limits
    });
    let volume = "volume-aws-gp3";
    let (without, with) = (two(volume, None), two(volume, Some(wide)));
    assert_eq!(replay(&readers(), &without), replay(&readers(), &with));
}

#[test]
fn a_recorded_device_stands_behind_the_gate_if_it_is_a_volume() {
    let recorded = |recorded: Vec<usize>| Scenario {
        placement: Vec::new(),
        devices: vec![None::<Profile>],
        ..two(
            "volume-aws-gp3",
            Some(InstanceScenario {
                recorded,
                ..limits(500.0)
            }),
        )
    };
    close(iops(&recorded(vec![0])), 500.0, 0.02);
    assert!(iops(&recorded(Vec::new())) > 5000.0);
}

#[test]
fn a_burst_is_there_until_its_credits_are_spent() {
    let bursting = Some(limited(InstanceLimits {
        burst: Some(InstanceBurst {
            iops: 12_000.0,
            mb_per_s: 1000.0,
            time_s: 3600.0,
        }),
        ..limits(4000.0).limits
    }));
    let spent = two("volume-aws-io2", bursting);
    let fresh = Scenario {
        worn: false,
        ..spent.clone()
    };
    close(iops(&spent), 4000.0, 0.01);
    close(iops(&fresh), 12_000.0, 0.01);
}

#[test]
fn impossible_limits_are_refused() {
    let error = replay(&readers(), &two("volume-aws-gp3", Some(limits(0.0)))).expect_err("refused");
    assert!(error.message.contains("instance.iops"), "{}", error.message);
}

// New devices are as long use leaves them where that is asked for; the recorded ones stay as they were.

#[test]
fn commits_of_a_consumer_ssd_are_slower_after_long_use() {
    let commits = work(4, &update(100), CommitGrouping::LeaderFollower);
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
    let commits = work(4, &update(100), CommitGrouping::LeaderFollower);
    for scenario in [
        all_on(memory(20.0), SPAN_NS, 0),
        Scenario::recorded(1, 2, ReplayMode::Steady { span_ns: SPAN_NS }, 0),
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
        work(4, &steps, CommitGrouping::LeaderFollower),
        &ProfileLibrary::default(),
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

#[test]
fn limits_are_read_from_json_and_other_keys_refused() {
    let read = |text: &str| serde_json::from_str::<InstanceScenario>(text);
    let burst = r#"{"iops": 8000, "mb_per_s": 200, "time_s": 1800}"#;
    let text = format!(r#"{{"iops": 4000, "mb_per_s": 100.5, "burst": {burst}, "recorded": [1]}}"#);
    let instance = read(&text).expect("limits");
    assert_eq!(instance.limits.burst.expect("a burst").time_s, 1800.0);
    assert_eq!((instance.limits.iops, instance.recorded), (4000.0, vec![1]));
    assert!(read(r#"{"iops": 4000, "mb_per_s": 100, "recorded": []}"#).is_ok());
    for wrong in [
        r#"{"iops": 4000}"#,
        r#"{"iops": 4000, "mb_per_s": 100, "bursts": null}"#,
    ] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}
