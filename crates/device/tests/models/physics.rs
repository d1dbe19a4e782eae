//! What physics says of a disk, checked on shipped profiles.

use crate::shipped::profile;
use tierwise_device::{Device, Driver, Op, Request};

const PAGE_SECTORS: u32 = 16;
const TURN_NS: f64 = 60e9 / 7200.0;

fn request(op: Op, sector: u64) -> Request {
    Request {
        op,
        sector,
        sectors: PAGE_SECTORS,
        fua: false,
    }
}

const FLUSH: Request = Request {
    op: Op::Flush,
    sector: 0,
    sectors: 0,
    fua: false,
};

/// Appends a second for one writer that flushes after each; `step` sectors from one page to the next.
fn appends_per_s(name: &str, step: u64, host_ns: u64) -> f64 {
    let mut driver = Driver::new(profile(name).build(3));
    let count = 2_000;
    for append in 0..count {
        driver.serve(request(Op::Write, 1_000_000 + append * step));
        driver.serve(FLUSH);
        driver.run_until(driver.now() + host_ns);
    }
    count as f64 * 1e9 / driver.now() as f64
}

#[test]
fn a_log_writer_makes_one_append_a_revolution() {
    for host_ns in [0, 50_000, 500_000] {
        for step in [0, u64::from(PAGE_SECTORS)] {
            let rate = appends_per_s("hdd-7k2", step, host_ns);
            assert!(
                (117.6..=122.4).contains(&rate),
                "{rate} appends/s, step {step}, host {host_ns} ns"
            );
        }
    }
}

#[test]
fn a_write_cache_hides_the_revolution_until_the_flush() {
    let mut driver = Driver::new(profile("hdd-7k2-sata-2009").build(3));
    let write = driver.serve(request(Op::Write, 1_000_000));
    assert!(write < 500_000, "a cached write takes {write} ns");
    let flush = driver.serve(FLUSH);
    assert!(
        flush > 500_000,
        "the flush must write to the medium, took {flush} ns"
    );
    assert!(driver.serve(FLUSH) < 200_000, "nothing is left to flush");
}

#[test]
fn forced_unit_access_passes_the_write_cache() {
    let mut driver = Driver::new(profile("hdd-7k2-sata-2009").build(3));
    let mut total = 0;
    for page in 0..50 {
        let write = request(Op::Write, 900_000_000 - page * 9_999_991);
        total += driver.serve(Request { fua: true, ..write });
    }
    assert!(total / 50 > 4_000_000, "mean {} ns", total / 50);
}

#[test]
fn random_writes_take_seek_half_a_turn_and_transfer() {
    let profile = profile("hdd-7k2");
    let mut driver = Driver::new(profile.build(1));
    let capacity = driver.device().capacity_sectors();
    let (count, mut sector) = (5_000, 1);
    for _ in 0..count {
        sector = (sector * 48_271) % 2_147_483_647;
        driver.serve(request(Op::Write, sector * 16 % (capacity - 16)));
    }
    let mean_ns = driver.now() as f64 / f64::from(count);
    let expected_ns = 8.5e6 + 0.5e6 + TURN_NS / 2.0 + 0.12e6 + 0.1e6;
    assert!(
        (mean_ns / expected_ns - 1.0).abs() < 0.05,
        "mean {mean_ns} ns, expected about {expected_ns} ns"
    );
}

#[test]
fn sequential_reads_run_at_the_media_rate() {
    let mut driver = Driver::new(profile("hdd-7k2").build(1));
    let (count, sectors) = (2_000, 256);
    for index in 0..count {
        driver.serve(Request {
            op: Op::Read,
            sector: index * 256,
            sectors,
            fua: false,
        });
    }
    let rate = (count * 256 * 512) as f64 / driver.now() as f64 * 1e3;
    assert!(
        (125.0..=145.0).contains(&rate),
        "{rate} MB/s, the data sheet says 140"
    );
}

#[test]
fn a_queue_is_served_faster_than_one_by_one() {
    let elapsed = |depth: u64| {
        let mut driver = Driver::new(profile("hdd-7k2").build(1));
        let mut sector = 7;
        for _ in 0..64 / depth {
            for _ in 0..depth {
                sector = (sector * 48_271) % 1_900_000_000;
                driver.submit(request(Op::Read, sector));
            }
            driver.run_until_idle();
        }
        driver.now()
    };
    assert!(
        elapsed(32) * 10 < elapsed(1) * 6,
        "32 at once {} ns, one by one {} ns",
        elapsed(32),
        elapsed(1)
    );
}

#[test]
fn the_angle_follows_absolute_time() {
    let read_at = |start| {
        let mut driver = Driver::new(profile("hdd-7k2").build(1));
        driver.run_until(start);
        driver.serve(request(Op::Read, 5_000_000))
    };
    let turns = |count: f64| (count * TURN_NS).round() as u64;
    assert!(read_at(0).abs_diff(read_at(turns(3.0))) < 10);
    assert!(read_at(0).abs_diff(read_at(turns(2.5))) > 1_000_000);
}
