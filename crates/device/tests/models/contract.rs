//! What every model does with requests and calls that a careful caller would not make.

use proptest::prelude::*;
use tierwise_device::{Completion, Device, Nanos, Op, Params, Precondition, Profile, Request};

use crate::disk::request;
use crate::shipped;

const OPS: [Op; 4] = [Op::Read, Op::Write, Op::Flush, Op::Discard];

/// One profile of each kind and of each way to keep data, arrays with and without a cache among them.
const PROFILES: [&str; 12] = [
    "hdd-10k-18g-fc",
    "hdd-7k2",
    "hdd-7k2-sata-2009",
    "ssd-sata-consumer",
    "ssd-optane",
    "ssd-dram-fc",
    "zero",
    "volume-aws-gp3",
    "volume-aws-st1",
    "array-raid1-2x-ssd-nvme-dc",
    "array-raid5-7x-hdd-7k2-200g-ata",
    "array-raid5-8x-hdd-10k-sas",
];

/// Lets everything happen.
fn finish(device: &mut dyn Device, done: &mut Vec<Completion>) {
    while let Some(event) = device.next_event() {
        device.advance(event, done);
        assert!(done.len() < 1_000, "the device never becomes idle");
    }
}

/// When one request completes that comes first, at `now`.
fn served(profile: &Profile, now: Nanos, request: Request) -> Nanos {
    let mut device = profile.build(1);
    let mut done = Vec::new();
    device.submit(now, 7, request);
    while done.is_empty() {
        let event = device
            .next_event()
            .expect("an outstanding request has a next event");
        device.advance(event, &mut done);
    }
    done[0].at
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_call_is_answered(
        calls in prop::collection::vec(
            (0_usize..4, prop_oneof![any::<u64>(), 0_u64..5_000], 0_u32..600, any::<bool>(), 0_u64..50_000_000, any::<bool>()),
            1..60,
        ),
    ) {
        for name in PROFILES {
            let mut device = shipped::profile(name).build(3);
            let mut done = Vec::new();
            for &(op, sector, sectors, fua, now, preload) in &calls {
                let request = Request { fua, ..request(OPS[op], sector, sectors) };
                if preload {
                    device.preload(&request);
                }
                device.advance(now, &mut done);
                device.submit(now, 1, request);
            }
            finish(&mut device, &mut done);
            prop_assert_eq!(done.len(), calls.len(), "{}", name);
            prop_assert!(done.is_sorted_by_key(|done| done.at), "{} goes back in time", name);
            prop_assert!(done.iter().all(|done| done.id == 1));
        }
    }
}

#[test]
fn a_range_past_the_end_is_served_at_the_end() {
    for name in PROFILES {
        let profile = shipped::profile(name);
        let capacity = profile.build(1).capacity_sectors();
        for op in OPS {
            let last = served(&profile, 1_000, request(op, capacity - 16, 16));
            for sector in [capacity - 1, capacity, u64::MAX] {
                let beyond = served(&profile, 1_000, request(op, sector, 16));
                assert_eq!(beyond, last, "{name}, {op:?} at {sector}");
            }
        }
    }
}

#[test]
fn a_range_longer_than_the_device_is_the_whole_device() {
    let long = request(Op::Read, 5, 4_000);
    assert_eq!(long.fitted(3_000), request(Op::Read, 0, 3_000));
    assert_eq!(long.fitted(4_000), request(Op::Read, 0, 4_000));
    assert_eq!(long.fitted(4_005), long);
    let nothing = request(Op::Write, u64::MAX, 0);
    assert_eq!(nothing.fitted(10), request(Op::Write, 10, 0));
}

#[test]
fn a_request_of_no_sectors_writes_nothing() {
    for name in PROFILES {
        let mut device = shipped::profile(name).build(1);
        let mut done = Vec::new();
        for (id, op) in (0..).zip(OPS) {
            device.preload(&request(op, 1, 0));
            device.submit(0, id, request(op, 1, 0));
        }
        finish(&mut device, &mut done);
        assert_eq!(done.len(), OPS.len(), "{name}");
        let written = device.written();
        assert_eq!(
            (written.host_sectors, written.medium_sectors),
            (0, 0),
            "{name}"
        );
    }
}

#[test]
fn a_call_in_the_past_is_one_at_the_latest_time() {
    for name in PROFILES {
        let profile = shipped::profile(name);
        for op in OPS {
            let exact = served(&profile, 5_000_000, request(op, 4_096, 8));
            let mut device = profile.build(1);
            let mut done = Vec::new();
            device.advance(5_000_000, &mut done);
            device.submit(1_000, 7, request(op, 4_096, 8));
            finish(&mut device, &mut done);
            assert_eq!(done[0].at, exact, "{name}, {op:?}");
            let none = done.len();
            device.advance(0, &mut done);
            assert_eq!(done.len(), none);
        }
    }
}

#[test]
fn equal_ids_complete_one_by_one() {
    for name in PROFILES {
        let mut device = shipped::profile(name).build(1);
        let mut done = Vec::new();
        for place in 0..40 {
            let op = OPS[place as usize % 4];
            device.submit(0, 9, request(op, place * 1_000, 8));
        }
        finish(&mut device, &mut done);
        assert_eq!(done.len(), 40, "{name}");
        assert!(done.iter().all(|done| done.id == 9));
    }
}

#[test]
fn a_worn_state_belongs_to_its_own_parameters() {
    let profile = shipped::profile("ssd-sata-consumer");
    let worn = Precondition::Random { active_share: 1.0 };
    profile.build(1).precondition(worn);
    let Params::Ssd(params) = profile.params() else {
        unreachable!("the profile is of an SSD")
    };
    let mut changed = params.clone();
    changed
        .cleaning
        .as_mut()
        .expect("a translation layer")
        .spare_share += 0.3;
    let mut device = tierwise_device::ssd::Ssd::new(changed);
    let mut done = Vec::new();
    device.precondition(worn);
    for id in 0..100 {
        device.submit(0, id, request(Op::Write, id * 9_000, 512));
    }
    finish(&mut device, &mut done);
    assert_eq!(done.len(), 100);
}
