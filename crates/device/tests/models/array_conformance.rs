//! Arrays of every level keep the rules of a device, whole, with a failed member and while rebuilding, with and
//! without a controller.

use crate::array_support::{array, request};
use crate::shipped;
use proptest::prelude::*;
use tierwise_device::{Device, Op, Precondition, Profile, conformance};

const NO_CONTROLLER: &str = "";
const CONTROLLER: &str =
    "[controller]\noverhead_us = 50\nbus_mb_per_s = 400\ncache_mib = 1\nwrite_share = 0.5\n";

/// An array, and on how many members each written sector ends if nothing has failed and there is no parity.
#[derive(Clone, Debug)]
struct Case {
    profile: Profile,
    copies: Option<u64>,
}

fn any_level() -> impl Strategy<Value = (&'static str, u32)> {
    prop_oneof![
        (2_u32..9).prop_map(|n| ("raid0", n)),
        (2_u32..4).prop_map(|n| ("raid1", n)),
        (2_u32..5).prop_map(|n| ("raid10", 2 * n)),
        (3_u32..9).prop_map(|n| ("raid5", n)),
    ]
}

fn any_array(controllers: Vec<String>) -> impl Strategy<Value = Case> {
    let member = prop::sample::select(vec!["small-disk", "small-ram", "pair"]);
    let state = prop::sample::select(vec![
        "",
        "failed_members = 1\n",
        "failed_members = 1\nrebuild_mb_per_s = 50\nrebuild_priority = 0.1\n",
    ]);
    let controller = prop::sample::select(controllers);
    (any_level(), member, state, controller, 1_u32..200).prop_map(
        |((level, members), member, state, controller, chunk)| {
            let state = if level == "raid0" { "" } else { state };
            let stripe = match level {
                "raid1" => String::new(),
                _ => format!("stripe_kib = {chunk}\n"),
            };
            let more = format!("{stripe}{state}{controller}");
            let below = if member == "pair" { 2 } else { 1 };
            let copies = match level {
                "raid0" => Some(1),
                "raid1" => Some(u64::from(members)),
                "raid10" => Some(2),
                _ => None,
            };
            Case {
                profile: array(member, level, members, &more),
                copies: copies
                    .filter(|_| state.is_empty())
                    .map(|copies| copies * below),
            }
        },
    )
}

fn controllers() -> Vec<String> {
    vec![
        NO_CONTROLLER.to_owned(),
        format!("{CONTROLLER}protected = false\n"),
        format!("{CONTROLLER}protected = true\ndestage_depth = 2\ndestage_after_us = 5000\n"),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn arrays_conform(case in any_array(controllers()), seed in any::<u64>(), count in 1_usize..150) {
        let Case { profile, .. } = case;
        let capacity = profile.build(0).capacity_sectors();
        prop_assert_eq!(capacity * 512, profile.capacity_bytes());
        for space in [capacity, 20_000] {
            let arrivals = conformance::arrivals(seed, count, space);
            conformance::check(|| profile.build(seed), &arrivals).map_err(TestCaseError::fail)?;
        }
    }

    #[test]
    fn every_written_sector_reaches_each_of_its_copies(
        case in any_array(vec![NO_CONTROLLER.to_owned()]), seed in any::<u64>(), count in 1_usize..100,
    ) {
        let mut device = case.profile.build(seed);
        device.precondition(Precondition::Sequential);
        device.preload(&request(Op::Write, 0, 4096));
        let (mut now, mut done) = (0, Vec::new());
        for (id, arrival) in (0..).zip(conformance::arrivals(seed, count, device.capacity_sectors())) {
            now += arrival.gap_ns;
            device.advance(now, &mut done);
            device.submit(now, id, arrival.request);
        }
        while let Some(event) = device.next_event() {
            device.advance(event, &mut done);
        }
        prop_assert_eq!(done.len(), count);
        let written = device.written();
        if let Some(copies) = case.copies {
            prop_assert_eq!(written.medium_sectors, copies * written.host_sectors);
        }
    }
}

/// Arrays that ship, as whole: few cases, since each builds up to a hundred disks.
#[test]
fn shipped_arrays_conform() {
    for name in [
        "array-raid0-12x-hdd-10k-fc",
        "array-raid0-2x-hdd-7k2-sata-2009",
        "array-raid0-100x-hdd-15k-sas",
        "array-raid0-12x-ssd-sata-slc-2008",
        "array-raid0-4x-ssd-pcie-slc-2008",
        "array-raid1-2x-ssd-nvme-dc",
        "array-raid5-7x-hdd-7k2-200g-ata",
        "array-raid5-8x-hdd-10k-sas",
        "array-raid10-8x-hdd-7k2-20t-nearline",
    ] {
        let profile = shipped::profile(name);
        let capacity = profile.build(0).capacity_sectors();
        for (seed, space) in [(1, capacity), (2, 20_000)] {
            let arrivals = conformance::arrivals(seed, 200, space);
            conformance::check(|| profile.build(seed), &arrivals)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}
