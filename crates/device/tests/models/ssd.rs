//! The simplest models, memory and a solid-state disk without a translation layer: latency, parallelism, link, cache.

use tierwise_device::{Driver, Op, Profile, Request};

use crate::disk::request;
use crate::flash::sourced;
use crate::shipped;

const PROFILE: &str = r#"
kind = "ssd"
summary = "test"
capacity_mb = 1000
channels = 4
stripe_kib = 4
read_us = 100
program_us = 1000
read_overhead_us = 10
write_overhead_us = 20
flush_us = 30
link_mb_per_s = 512
write_cache_kib = 64
power_loss_protection = false
"#;

const FLUSH: Request = Request {
    op: Op::Flush,
    sector: 0,
    sectors: 0,
    fua: false,
};

fn driver(changes: &[(&str, &str)]) -> Driver<Box<dyn tierwise_device::Device>> {
    let text = changes.iter().fold(PROFILE.to_owned(), |text, (old, new)| {
        text.replace(old, new)
    });
    Driver::new(
        Profile::parse(&sourced(&text), "test.toml")
            .expect("a valid profile")
            .build(0),
    )
}

#[test]
fn a_read_takes_overhead_flash_and_link() {
    assert_eq!(
        driver(&[]).serve(request(Op::Read, 0, 8)),
        10_000 + 100_000 + 8_000
    );
}

#[test]
fn stripes_are_read_by_channels_in_parallel() {
    assert_eq!(
        driver(&[]).serve(request(Op::Read, 0, 32)),
        10_000 + 100_000 + 32_000
    );
    assert_eq!(
        driver(&[]).serve(request(Op::Read, 0, 40)),
        10_000 + 200_000 + 40_000
    );
    assert_eq!(
        driver(&[("channels = 4", "channels = 1")]).serve(request(Op::Read, 0, 32)),
        10_000 + 400_000 + 32_000
    );
}

#[test]
fn one_channel_serves_in_order_of_arrival() {
    let mut driver = driver(&[]);
    for stripe in [0, 4, 1] {
        driver.submit(request(Op::Read, stripe * 8, 8));
    }
    let done: Vec<(u64, u64)> = driver
        .run_until_idle()
        .iter()
        .map(|done| (done.id, done.at))
        .collect();
    assert_eq!(done, [(0, 118_000), (2, 118_000), (1, 218_000)]);
}

#[test]
fn a_cached_write_is_reported_when_received_and_flushed_when_programmed() {
    let mut volatile = driver(&[]);
    assert_eq!(volatile.serve(request(Op::Write, 0, 8)), 20_000 + 8_000);
    assert_eq!(volatile.serve(FLUSH), 1_000_000 + 30_000);
    let mut protected = driver(&[("protection = false", "protection = true")]);
    protected.serve(request(Op::Write, 0, 8));
    assert_eq!(protected.serve(FLUSH), 30_000);
}

#[test]
fn without_a_cache_or_with_forced_access_a_write_is_programmed_first() {
    let mut uncached = driver(&[("write_cache_kib = 64", "write_cache_kib = 0")]);
    assert_eq!(
        uncached.serve(request(Op::Write, 0, 8)),
        20_000 + 8_000 + 1_000_000
    );
    let forced = Request {
        fua: true,
        ..request(Op::Write, 0, 8)
    };
    assert_eq!(driver(&[]).serve(forced), 20_000 + 8_000 + 1_000_000);
}

#[test]
fn a_full_cache_writes_at_the_pace_of_the_flash() {
    let mut driver = driver(&[]);
    let count = 1_000;
    for stripe in 0..count {
        driver.serve(request(Op::Write, stripe * 8, 8));
    }
    let per_write_ns = driver.now() as f64 / count as f64;
    assert!(
        (per_write_ns / 250_000.0 - 1.0).abs() < 0.03,
        "{per_write_ns} ns a write, four channels of 1 ms"
    );
}

// Memory behind a link: each request has its latency, all share the link.

fn shipped_driver(name: &str) -> Driver<Box<dyn tierwise_device::Device>> {
    Driver::new(shipped::profile(name).build(1))
}

#[test]
fn one_request_takes_latency_and_transfer() {
    let mut driver = shipped_driver("ssd-dram-fc");
    // 8 KiB at 200 MB/s take 40.96 us, the latency is 50 us.
    assert_eq!(driver.serve(request(Op::Read, 0, 16)), 90_960);
    assert_eq!(driver.serve(request(Op::Write, 0, 16)), 90_960);
    assert_eq!(driver.serve(request(Op::Flush, 0, 0)), 20_000);
}

#[test]
fn latencies_overlap_and_the_link_is_shared_in_order_of_arrival() {
    let mut driver = shipped_driver("ssd-dram-fc");
    for _ in 0..4 {
        driver.submit(request(Op::Read, 0, 16));
    }
    let done: Vec<(u64, u64)> = driver
        .run_until_idle()
        .iter()
        .map(|done| (done.id, done.at))
        .collect();
    let at = |index: u64| 50_000 + (index + 1) * 40_960;
    assert_eq!(done, [(0, at(0)), (1, at(1)), (2, at(2)), (3, at(3))]);
}

#[test]
fn the_device_that_measures_the_path_takes_no_time() {
    let mut driver = shipped_driver("zero");
    for op in [Op::Read, Op::Write, Op::Flush, Op::Discard] {
        assert_eq!(driver.serve(request(op, 0, 2048)), 0);
    }
}
