//! The fast flash of consumer drives: it fills, then writes slow down; idle time folds it.

use crate::flash;
use crate::flash::{overwrite, ssd};
use tierwise_device::Device;
use tierwise_device::ssd::Ssd;

const SIZE_BYTES: u64 = 40_000_000;
const SIZE_UNITS: u64 = SIZE_BYTES / 4096;
/// Times of eight units on eight dies: 100 us in fast flash, 400 us else.
const FAST_UNIT_NS: f64 = 100e3 / 32.0;
const SLOW_UNIT_NS: f64 = 400e3 / 32.0;

fn device(when_full: &str) -> Ssd {
    let table = format!(
        "[slc_cache]\nsize_mb = 40\nfull_size_mb = 10\nprogram_us = 100\nidle_ms = 50\nwhen_full = \"{when_full}\"\n[source]\nslc_cache = \"made for the test\""
    );
    ssd(&[("[source]", &table)])
}

/// Writes the first `count` units from `now` on; nanoseconds a unit, and the time of the end.
fn write_units(device: &mut Ssd, now: u64, count: u64) -> (f64, u64) {
    let mut unit = 0;
    let end = overwrite(device, now, count, || {
        unit += 1;
        unit - 1
    });
    ((end - now) as f64 / count as f64, end)
}

fn assert_near(measured: f64, expected: f64) {
    assert!(
        (measured / expected - 1.0).abs() < 0.1,
        "{measured} ns a unit, expected {expected}"
    );
}

/// Writes one after the other: a host that waits for each takes 10 us a unit, more than fast flash does.
const HOST_UNIT_NS: f64 = 10e3;

#[test]
fn writes_are_fast_until_it_is_full() {
    let mut device = device("direct");
    let (first, now) = write_units(&mut device, 0, SIZE_UNITS * 9 / 10);
    assert_near(first, HOST_UNIT_NS);
    let (_, now) = write_units(&mut device, now, SIZE_UNITS / 10 + 1000);
    let (second, _) = write_units(&mut device, now, 5_000);
    assert_near(second, SLOW_UNIT_NS);
}

/// What does not fit waits until as much is folded: read, programmed slowly, then written fast.
#[test]
fn a_drive_that_folds_when_full_is_slower_than_one_that_writes_past() {
    let mut device = device("fold");
    let (_, now) = write_units(&mut device, 0, SIZE_UNITS + 2_000);
    let (folding, _) = write_units(&mut device, now, 5_000);
    assert_near(folding, SLOW_UNIT_NS + FAST_UNIT_NS + 50e3 / 32.0);
}

#[test]
fn idle_time_folds_and_writes_are_fast_again() {
    let mut device = device("direct");
    let (_, now) = write_units(&mut device, 0, SIZE_UNITS + 2_000);
    let before = device.written();
    let fold_ns = SIZE_UNITS as f64 * (SLOW_UNIT_NS + 50e3 / 32.0);
    let half = now + 60_000_000 + (fold_ns / 2.0) as u64;
    let (fast, now) = write_units(&mut device, half, SIZE_UNITS * 4 / 10);
    assert_near(fast, HOST_UNIT_NS);
    let folded = device.written().medium_sectors - before.medium_sectors;
    let written = SIZE_UNITS * 4 / 10 * 8;
    let share = (folded - written) as f64 / (SIZE_UNITS * 8) as f64;
    assert!((share - 0.5).abs() < 0.05, "folded {share} of it");
    let (_, now) = write_units(&mut device, now, SIZE_UNITS * 2 / 10);
    let (slow, _) = write_units(&mut device, now, 5_000);
    assert_near(slow, SLOW_UNIT_NS);
}

/// On a full device it is smaller, and full.
#[test]
fn a_worn_device_has_none_left() {
    let mut device = device("direct");
    device.precondition(flash::WORN);
    let (first, _) = write_units(&mut device, 0, 5_000);
    assert!(first > SLOW_UNIT_NS, "{first} ns a unit");
}
