//! A machine's limits hold for all its network volumes together, and for nothing else.

use tierwise_device::Profile;
use tierwise_network::{Instance, InstanceBurst, Scenario, replay};
use tierwise_recording::Role;
use tierwise_work::{Grouping, Step, Work};

use crate::support::{SECOND, all_on, close, cpu, shipped, work};

const SPAN_NS: u64 = 5 * SECOND;

fn limits(iops: f64) -> Instance {
    Instance {
        iops,
        mb_per_s: 1000.0,
        burst: None,
        recorded: Vec::new(),
    }
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
        Grouping::LeaderFollower,
    )
}

/// Data and temporary files each on a device of this kind.
fn two(profile: &str, instance: Option<Instance>) -> Scenario {
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
    let reads: u64 = outcome.io.iter().map(|one| one.reads).sum();
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
    let wide = Instance {
        mb_per_s: 1e8,
        ..limits(1e8)
    };
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
            Some(Instance {
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
    let bursting = Some(Instance {
        burst: Some(InstanceBurst {
            iops: 12_000.0,
            mb_per_s: 1000.0,
            time_s: 3600.0,
        }),
        ..limits(4000.0)
    });
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
