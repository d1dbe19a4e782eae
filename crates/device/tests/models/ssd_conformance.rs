//! Small SSDs with every combination of caches keep the rules of a device.

use crate::flash;
use crate::flash::ssd;
use tierwise_device::ssd::Ssd;
use tierwise_device::{Device, Precondition, conformance};

const VOLATILE: (&str, &str) = ("protection = true", "protection = false");
const SMALL: (&str, &str) = ("write_cache_kib = 1024", "write_cache_kib = 32");
const NONE: (&str, &str) = ("write_cache_kib = 1024", "write_cache_kib = 0");
const LARGE_UNITS: (&str, &str) = ("[cleaning]", "[cleaning]\nmapping_kib = 16");
const NOT_QUEUED: (&str, &str) = ("flush_us = 20", "flush_us = 20\nflush_queued = false");
const APART: (&str, &str) = (
    "spare_share = 0.28",
    "spare_share = 0.05\nseparate_moves = true",
);
const FOLD: (&str, &str) = (
    "[source]",
    "[slc_cache]\nsize_mb = 1\nprogram_us = 100\nidle_ms = 1\nwhen_full = \"fold\"\n[source]\nslc_cache = \"made for the test\"",
);

#[test]
fn small_devices_conform_in_every_state() {
    let variants: [&[(&str, &str)]; 6] = [
        &[SMALL],
        &[VOLATILE, SMALL, NOT_QUEUED],
        &[VOLATILE, NONE],
        &[VOLATILE, FOLD, APART],
        &[LARGE_UNITS, SMALL, FOLD],
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
            let arrivals = conformance::arrivals(seed, 400, space);
            conformance::check(build, &arrivals)
                .unwrap_or_else(|error| panic!("variant {index}, {state:?}: {error}"));
        }
    }
}

#[test]
fn what_was_preloaded_is_mapped_but_not_counted() {
    let mut device = ssd(&[]);
    let all = flash::units(&device);
    for unit in (0..all).step_by(64) {
        device.preload(&tierwise_device::Request {
            sectors: 64 * flash::UNIT as u32,
            ..flash::write(unit)
        });
    }
    assert_eq!(device.written(), tierwise_device::Written::default());
    let mut random = flash::Random(1);
    flash::overwrite(&mut device, 0, all, || random.below(all));
    let cleaned = device.written().amplification().expect("writes");
    assert!(cleaned > 1.5, "as on a full device: {cleaned}");
}
