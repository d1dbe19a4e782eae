//! What the shipped disks deliver, against their data sheets.

use crate::request::request;
use crate::shipped;
use tierwise_device::{Driver, Op, Params};

/// Disks, with the outer zone's rate in 10^6 bytes per second that the data sheet gives (or, for the first, that
/// its zones give) and the average seek in milliseconds.
const DISKS: [(&str, f64, f64); 7] = [
    ("hdd-10k-18g-fc", 25.6, 5.2),
    ("hdd-7k2-200g-ata", 58.0, 8.5),
    ("hdd-7k2-sata-2009", 125.0, 8.5),
    ("hdd-7k2", 140.0, 8.5),
    ("hdd-15k-sas", 160.0, 2.9),
    ("hdd-10k-sas", 266.0, 3.7),
    ("hdd-7k2-20t-nearline", 285.0, 7.5),
];

/// Rate of requests in sequence from the first sector on, one at a time, in 10^6 bytes per second.
fn rate_mb_per_s(name: &str, op: Op, sectors: u32) -> f64 {
    const SPAN_SECTORS: u64 = 2_000_000;
    let mut driver = Driver::new(shipped::profile(name).build(1));
    let mut start = 0;
    for sector in (0..SPAN_SECTORS).step_by(sectors as usize) {
        // The first half fills the caches.
        if sector <= SPAN_SECTORS / 2 {
            start = driver.now();
        }
        driver.serve(request(op, sector, sectors));
    }
    (SPAN_SECTORS / 2 * 512) as f64 / ((driver.now() - start) as f64 / 1e3)
}

#[test]
fn sequential_reads_run_at_the_rate_of_the_data_sheet_whatever_their_size() {
    for (name, expected, _) in DISKS {
        for sectors in [128, 2048] {
            let rate = rate_mb_per_s(name, Op::Read, sectors);
            // The zones of the two disks of 2009 come out 3 % slower than their sheets, as their sources say.
            let error = (rate / expected - 1.0).abs();
            assert!(
                error < 0.035,
                "{name}, {sectors} sectors: {rate} MB/s, not {expected}"
            );
        }
    }
}

#[test]
fn sequential_writes_through_a_cache_lose_no_turn() {
    for name in [
        "hdd-7k2-200g-ata",
        "hdd-7k2-sata-2009",
        "hdd-7k2-20t-nearline",
    ] {
        let (read, write) = (
            rate_mb_per_s(name, Op::Read, 512),
            rate_mb_per_s(name, Op::Write, 512),
        );
        // A skew one sector too short costs a turn at every track: half the rate. More than the rate of
        // reads is what the cache has taken in by the end.
        assert!(
            write > read * 0.97,
            "{name}: {write} MB/s written, {read} read"
        );
    }
}

#[test]
fn random_reads_take_the_average_seek_and_half_a_turn() {
    for (name, _, seek_ms) in DISKS {
        let profile = shipped::profile(name);
        let Params::Hdd(params) = profile.params() else {
            panic!("{name} is no disk");
        };
        let mut driver = Driver::new(profile.build(1));
        let places = profile.capacity_bytes() / 4096;
        let mut state = 1_u64;
        let count = 4_000;
        for _ in 0..count {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let place = ((u128::from(state) * u128::from(places)) >> 64) as u64;
            driver.serve(request(Op::Read, place * 8, 8));
        }
        let found_ms = driver.now() as f64 / 1e6 / f64::from(count);
        let overhead_ms = params.overhead.read_ns[1][0] as f64 / 1e6;
        let expected_ms = overhead_ms + seek_ms + 30_000.0 / params.rpm;
        // Sectors lie denser at the edge, so that seeks are a little shorter than over random cylinders.
        let share = found_ms / expected_ms;
        assert!(
            (0.93..1.03).contains(&share),
            "{name}: {found_ms} ms, not {expected_ms}"
        );
    }
}
