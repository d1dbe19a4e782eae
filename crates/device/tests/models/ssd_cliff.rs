//! The latency cliff: random writes run at the flash's rate until spare blocks run out, then at that of cleaning.

use crate::flash;
use crate::flash::ssd;
use tierwise_device::ssd::{Window, overwrite_history, uniform_write_amplification};
use tierwise_device::{Device, Precondition};

const SPARE: f64 = 0.28;
const WINDOW_BYTES: u64 = 20_000_000;
/// Eight dies that program 16 KiB in 400 us.
const FLASH_MB_PER_S: f64 = 8.0 * 16_384.0 / 400.0;

/// Random writes to a small device, all of whose sectors were written in order.
fn history(windows: u64) -> (Vec<Window>, f64) {
    let mut device = ssd(&[("write_cache_kib = 1024", "write_cache_kib = 512")]);
    device.precondition(Precondition::Sequential);
    let capacity_bytes = device.capacity_sectors() as f64 * 512.0;
    let history = overwrite_history(&mut device, 4, WINDOW_BYTES, windows, 1);
    (history, capacity_bytes)
}

#[test]
fn the_cliff_comes_when_the_spare_space_is_written() {
    let (history, capacity_bytes) = history(30);
    let cliff = history
        .iter()
        .find(|window| window.mb_per_s < FLASH_MB_PER_S * 0.8)
        .expect("a cliff");
    let spare_bytes = SPARE * capacity_bytes;
    let late = cliff.written_bytes as f64 - spare_bytes;
    assert!(
        late.abs() < 2.0 * WINDOW_BYTES as f64,
        "the cliff lies {late} bytes behind the spare space of {spare_bytes}"
    );
    let before = &history[5];
    assert!((before.mb_per_s / FLASH_MB_PER_S - 1.0).abs() < 0.03);
    assert_eq!(before.write_amplification, 1.0);
    assert!(
        cliff.p99_ns as f64 > 1.5 * before.p99_ns as f64,
        "p99 {} ns, {} ns before",
        cliff.p99_ns,
        before.p99_ns
    );
}

/// Each unit of the host costs its program, the read and program of the units moved for it, and its share of
/// an erase; eight dies do that work side by side.
#[test]
fn beyond_the_cliff_the_rate_is_what_cleaning_leaves() {
    let (history, _) = history(250);
    let settled = &history[200..];
    let mean_mb_per_s =
        settled.len() as f64 / settled.iter().map(|w| 1.0 / w.mb_per_s).sum::<f64>();
    let amplification = uniform_write_amplification(SPARE);
    let moves = amplification - 1.0;
    let erase_us = 2000.0 / 16.0 * amplification;
    let page_us = 400.0 + moves * (400.0 + 50.0) + erase_us;
    let expected = 8.0 * 16_384.0 / page_us;
    assert!(
        (mean_mb_per_s / expected - 1.0).abs() < 0.03,
        "{mean_mb_per_s} MB/s, expected {expected}"
    );
}

#[test]
fn a_worn_device_starts_beyond_the_cliff() {
    let mut device = ssd(&[]);
    device.precondition(flash::WORN);
    let worn = overwrite_history(&mut device, 4, WINDOW_BYTES, 20, 2);
    let (replayed, _) = history(250);
    let ratio = worn[19].mb_per_s / replayed[249].mb_per_s;
    assert!((ratio - 1.0).abs() < 0.03, "ratio {ratio}");
}
