//! Every model keeps the rules of a device, under arrivals made by proptest and under calls that no careful caller makes.

use proptest::prelude::*;
use tierwise_device::ssd::Ssd;
use tierwise_device::{
    Completion, Device, DeviceParams, Nanos, Op, Precondition, Profile, Request, conformance,
};

use crate::support::*;

/// Checks `profile` over its whole space, and over a small part of it where requests meet each other.
fn conforms(profile: &Profile, seed: u64, count: usize) -> Result<(), TestCaseError> {
    let capacity = profile.build(0).capacity_sectors();
    for space in [capacity, 20_000.min(capacity)] {
        let arrivals = conformance::conformance_requests(seed, count, space);
        conformance::check_device_rules(|| profile.build(seed), &arrivals)
            .map_err(TestCaseError::fail)?;
    }
    Ok(())
}

macro_rules! conformance_of {
    ($($test:ident: $profile:literal;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
            $(#[test]
            fn $test(seed in any::<u64>(), count in 1_usize..300) {
                conforms(&shipped($profile), seed, count)?;
            })*
        }
    };
}

conformance_of! {
    disk_without_write_cache: "hdd-7k2";
    disk_with_write_cache: "hdd-7k2-sata-2009";
    disk_of_the_papers: "hdd-10k-18g-fc";
    sata_ssd: "ssd-sata-dc";
    nvme_ssd: "ssd-nvme-dc";
    consumer_sata_ssd: "ssd-sata-consumer";
    consumer_nvme_ssd: "ssd-nvme-consumer";
    xpoint_ssd: "ssd-optane";
    first_sata_ssd: "ssd-sata-slc-2008";
    first_pcie_ssd: "ssd-pcie-slc-2008";
    dram_ssd: "ssd-dram-fc";
    no_delay: "zero";
    volume_that_merges: "volume-aws-gp3";
    volume_with_credits: "volume-aws-st1";
    volume_without_units: "volume-gcp-pd-ssd";
}

#[test]
fn small_caches_and_first_come_first_served_conform() {
    let text = std::fs::read_to_string(format!(
        "{}/../../python/tierwise/data/devices/hdd-7k2-sata-2009.toml",
        env!("CARGO_MANIFEST_DIR")
    ))
    .expect("a shipped profile")
    .replace("write_sectors = 8192", "write_sectors = 96")
    .replace("write_segments = 128", "write_segments = 2")
    .replace("segments = 32", "segments = 1")
    .replace("\"sptf\"", "\"fcfs\"");
    let arrival = "write_segments = 2\nread_on_arrival = true";
    let adaptive = "write_segments = 2\nread_on_arrival = true\nreadahead_if_sequential = true";
    for segments in ["write_segments = 2", arrival, adaptive] {
        let text = text.replace("write_segments = 2", segments);
        let profile = Profile::parse(&text, "small.toml").expect("a valid profile");
        for seed in 0..64 {
            conforms(&profile, seed, 200).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
    }
}

#[test]
fn seeds_turn_the_platter() {
    let profile = shipped("hdd-7k2");
    let arrivals = conformance::conformance_requests(1, 50, 1_000_000);
    let times = |seed| {
        conformance::completion_times(profile.build(seed), &arrivals).expect("a conforming device")
    };
    assert_eq!(times(1), times(1));
    assert_ne!(times(1), times(2));
}

/// A device that breaks one rule, to show that the suite sees it.
struct Broken<D: Device> {
    inner: D,
    rule: &'static str,
    count: u64,
}

impl<D: Device> Device for Broken<D> {
    fn submit(&mut self, now: u64, id: u64, request: Request) {
        self.inner.submit(now, id, request);
    }

    fn next_event(&self) -> Option<u64> {
        match (self.rule, self.inner.next_event()) {
            ("sleeps", Some(_)) if self.count > 5 => None,
            (_, event) => event,
        }
    }

    fn advance(&mut self, now: u64, completions: &mut Vec<tierwise_device::Completion>) {
        let before = completions.len();
        self.inner.advance(now, completions);
        self.count += (completions.len() - before) as u64;
        match (self.rule, completions.get(before).copied()) {
            ("early", Some(done)) => completions[before].at = done.at / 2,
            ("twice", Some(done)) => completions.push(done),
            ("future", Some(done)) => completions[before].at = done.at + 1_000_000,
            _ => {}
        }
    }

    fn capacity_sectors(&self) -> u64 {
        self.inner.capacity_sectors()
    }
}

#[test]
fn the_suite_catches_devices_that_break_a_rule() {
    let profile = shipped("hdd-7k2");
    let arrivals = conformance::conformance_requests(5, 100, 1_000_000);
    for rule in ["early", "twice", "future", "sleeps"] {
        let broken = || Broken {
            inner: profile.build(1),
            rule,
            count: 0,
        };
        assert!(
            conformance::check_device_rules(broken, &arrivals).is_err(),
            "a device that is wrong by \"{rule}\" passed"
        );
    }
}

// Arrays of every level keep the rules of a device, whole and with a failed member, with and without a controller.

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
    let state = prop::sample::select(vec!["", "failed_members = 1\n"]);
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
        format!("{CONTROLLER}protected = true\n"),
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
            let arrivals = conformance::conformance_requests(seed, count, space);
            conformance::check_device_rules(|| profile.build(seed), &arrivals).map_err(TestCaseError::fail)?;
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
        for (id, arrival) in (0..).zip(conformance::conformance_requests(seed, count, device.capacity_sectors())) {
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
        let profile = shipped(name);
        let capacity = profile.build(0).capacity_sectors();
        for (seed, space) in [(1, capacity), (2, 20_000)] {
            let arrivals = conformance::conformance_requests(seed, 200, space);
            conformance::check_device_rules(|| profile.build(seed), &arrivals)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

// Small SSDs with every combination of caches keep the rules of a device.

const VOLATILE: (&str, &str) = ("protection = true", "protection = false");
const SMALL: (&str, &str) = ("write_cache_kib = 1024", "write_cache_kib = 32");
const NONE: (&str, &str) = ("write_cache_kib = 1024", "write_cache_kib = 0");
const LARGE_UNITS: (&str, &str) = ("[cleaning]", "[cleaning]\nmapping_kib = 16");
const NOT_QUEUED: (&str, &str) = ("flush_us = 20", "flush_us = 20\nflush_queued = false");
const FULL: (&str, &str) = ("spare_share = 0.28", "spare_share = 0.05");
const FAST: (&str, &str) = (
    "[cleaning]",
    "[slc_cache]\nsize_mb = 1\nprogram_us = 100\nidle_ms = 1\n[cleaning]",
);

#[test]
fn small_devices_conform_in_every_state() {
    let variants: [&[(&str, &str)]; 6] = [
        &[SMALL],
        &[VOLATILE, SMALL, NOT_QUEUED],
        &[VOLATILE, NONE],
        &[VOLATILE, FAST, FULL],
        &[LARGE_UNITS, SMALL, FAST],
        &[LARGE_UNITS, VOLATILE, NOT_QUEUED],
    ];
    let states = [
        Precondition::Fresh,
        Precondition::Sequential,
        Precondition::Random { active_share: 0.3 },
    ];
    for (index, changes) in variants.into_iter().enumerate() {
        for (state, seed) in states.into_iter().zip(1..) {
            let build = || -> Ssd {
                let mut device = ssd(changes);
                device.precondition(state);
                device
            };
            let space = [30_000, build().capacity_sectors()][seed as usize % 2];
            let arrivals = conformance::conformance_requests(seed, 400, space);
            conformance::check_device_rules(build, &arrivals)
                .unwrap_or_else(|error| panic!("variant {index}, {state:?}: {error}"));
        }
    }
}

#[test]
fn what_was_preloaded_is_mapped_but_not_counted() {
    let mut device = ssd(&[]);
    let all = units(&device);
    for unit in (0..all).step_by(64) {
        device.preload(&Request {
            sectors: 64 * UNIT as u32,
            ..write(unit)
        });
    }
    assert_eq!(device.written(), tierwise_device::WrittenSectors::default());
    let mut random = Random(1);
    overwrite(&mut device, 0, all, || random.below(all));
    let cleaned = device.written().amplification().expect("writes");
    assert!(cleaned > 1.5, "as on a full device: {cleaned}");
}

// What every model does with requests and calls that a careful caller would not make.

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
            let mut device = shipped(name).build(3);
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
        let profile = shipped(name);
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
        let mut device = shipped(name).build(1);
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
        let profile = shipped(name);
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
        let mut device = shipped(name).build(1);
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
    let profile = shipped("ssd-sata-consumer");
    profile.build(1).precondition(WORN);
    let DeviceParams::Ssd(params) = profile.params() else {
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
    device.precondition(WORN);
    for id in 0..100 {
        device.submit(0, id, request(Op::Write, id * 9_000, 512));
    }
    finish(&mut device, &mut done);
    assert_eq!(done.len(), 100);
}
