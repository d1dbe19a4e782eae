//! Every model keeps the rules of a device, under arrivals made by proptest.

use crate::shipped;
use proptest::prelude::*;
use tierwise_device::{Device, Profile, conformance};

/// Checks `profile` over its whole space, and over a small part of it where requests meet each other.
fn conforms(profile: &Profile, seed: u64, count: usize) -> Result<(), TestCaseError> {
    let capacity = profile.build(0).capacity_sectors();
    for space in [capacity, 20_000.min(capacity)] {
        let arrivals = conformance::arrivals(seed, count, space);
        conformance::check(|| profile.build(seed), &arrivals).map_err(TestCaseError::fail)?;
    }
    Ok(())
}

macro_rules! conformance_of {
    ($($test:ident: $profile:literal;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
            $(#[test]
            fn $test(seed in any::<u64>(), count in 1_usize..300) {
                conforms(&shipped::profile($profile), seed, count)?;
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
    let profile = shipped::profile("hdd-7k2");
    let arrivals = conformance::arrivals(1, 50, 1_000_000);
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
    fn submit(&mut self, now: u64, id: u64, request: tierwise_device::Request) {
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
    let profile = shipped::profile("hdd-7k2");
    let arrivals = conformance::arrivals(5, 100, 1_000_000);
    for rule in ["early", "twice", "future", "sleeps"] {
        let broken = || Broken {
            inner: profile.build(1),
            rule,
            count: 0,
        };
        assert!(
            conformance::check(broken, &arrivals).is_err(),
            "a device that is wrong by \"{rule}\" passed"
        );
    }
}
