//! What delays what in an SSD with and without a translation layer, and in memory.

use tierwise_device::ssd::Ssd;
use tierwise_device::{Device, Op, Profile, Request, VirtualTimeDriver};

use crate::support::*;

const VOLATILE: (&str, &str) = ("protection = true", "protection = false");

fn driver(changes: &[(&str, &str)]) -> VirtualTimeDriver<Ssd> {
    VirtualTimeDriver::new(ssd(changes))
}

fn read(unit: u64, units: u32) -> Request {
    Request {
        op: Op::Read,
        sectors: units * 8,
        ..write(unit)
    }
}

/// Queues a program on die 0, of which the host hears after 10 us.
fn program_a_page(driver: &mut VirtualTimeDriver<Ssd>) {
    for unit in 0..4 {
        driver.submit(write(1000 + unit));
    }
    driver.run_until(driver.now() + 10_000);
}

#[test]
fn a_read_waits_for_the_program_that_runs_on_its_die() {
    let mut driver = driver(&[]);
    program_a_page(&mut driver);
    driver.run_until(60_000);
    assert_eq!(driver.serve(read(4, 1)), 55_000, "another die is idle");
    let waited = driver.serve(read(0, 1));
    assert_eq!(
        driver.now(),
        10_000 + 400_000 + 50_000,
        "waited {waited} ns"
    );
}

#[test]
fn a_die_that_can_suspend_keeps_a_read_waiting_only_so_long() {
    let mut driver = driver(&[("program_us = 400", "program_us = 400\nsuspend_us = 30")]);
    program_a_page(&mut driver);
    driver.run_until(60_000);
    assert_eq!(driver.serve(read(0, 1)), 5_000 + 30_000 + 50_000);
}

#[test]
fn a_read_goes_before_queued_programs_and_delays_them() {
    let one_die = [
        ("channels = 2", "channels = 1"),
        ("dies_per_channel = 4", "dies_per_channel = 1"),
        VOLATILE,
    ];
    let durable_at = |reads: bool| {
        let mut driver = driver(&one_die);
        for _ in 0..10 {
            program_a_page(&mut driver);
        }
        if reads {
            let waited = driver.serve(read(0, 1));
            assert!(waited <= 5_000 + 400_000 + 50_000, "waited {waited} ns");
        }
        program_a_page(&mut driver);
        driver.serve(Request::FLUSH);
        driver.now()
    };
    assert_eq!(durable_at(true) - durable_at(false), 50_000);
}

/// Reads of an idle device take no longer than sense and overhead; beside cleaning some meet an erase.
#[test]
fn some_reads_meet_an_erase() {
    let mut driver = VirtualTimeDriver::new(worn(0.28));
    let mut random = Random(3);
    let units = units(driver.device());
    let mut longest = 0;
    for _ in 0..20_000 {
        driver.serve(write(random.below(units)));
        longest = longest.max(driver.serve(read(random.below(units), 1)));
    }
    assert!(
        longest > 500_000,
        "no read met an erase of 2 ms: {longest} ns at most"
    );
    assert!(longest < 2_000_000 + 500_000, "{longest} ns");
}

#[test]
fn page_types_take_their_own_time() {
    let mut driver = driver(&[("read_us = 50", "read_us = [30, 50, 100]")]);
    let rows: Vec<u64> = (0..6)
        .map(|row| driver.serve(read(row * 8 * 4, 1)) - 5_000)
        .collect();
    assert_eq!(rows, [30_000, 50_000, 100_000, 30_000, 50_000, 100_000]);
}

#[test]
fn planes_are_read_together_and_channels_are_shared() {
    let whole = |changes: &[(&str, &str)]| driver(changes).serve(read(0, 64));
    assert_eq!(
        whole(&[]),
        5_000 + 2 * 50_000,
        "64 units on 8 dies: two pages each"
    );
    assert_eq!(whole(&[("planes = 1", "planes = 2")]), 5_000 + 50_000);
    let channel = [("planes = 1", "planes = 2\nchannel_mb_per_s = 512")];
    assert_eq!(
        whole(&channel),
        5_000 + 50_000 + 4 * 64_000,
        "each of two channels moves 128 KiB, one page after the other"
    );
}

#[test]
fn a_flush_empties_a_volatile_cache_and_writes_its_mapping() {
    let journal = ("flush_us = 20", "flush_us = 20\njournal_us = 700");
    let mut protected = driver(&[journal]);
    protected.serve(write(1));
    assert_eq!(protected.serve(Request::FLUSH), 20_000);
    let mut volatile = driver(&[journal, VOLATILE]);
    volatile.serve(write(1));
    assert_eq!(volatile.serve(Request::FLUSH), 400_000 + 700_000 + 20_000);
    assert_eq!(
        volatile.serve(Request::FLUSH),
        20_000,
        "nothing is left to flush"
    );
    let written = volatile.device().written();
    assert_eq!(
        written.medium_sectors, 32,
        "a page of 16 KiB for a unit of 4 KiB"
    );
}

#[test]
fn a_flush_that_is_not_queued_keeps_others_out() {
    let read_behind_flush = |queued: &str| {
        let mut driver = driver(&[
            VOLATILE,
            (
                "flush_us = 20",
                &format!("flush_us = 20\nflush_queued = {queued}"),
            ),
        ]);
        driver.serve(write(1));
        driver.submit(Request::FLUSH);
        driver.serve(read(400, 1))
    };
    assert_eq!(read_behind_flush("true"), 55_000);
    assert_eq!(read_behind_flush("false"), 400_000 + 20_000 + 55_000);
}

#[test]
fn a_write_that_continues_a_unit_does_not_cost_another() {
    let half = |sector| Request {
        sector,
        sectors: 4,
        ..write(0)
    };
    let mut joined = driver(&[]);
    for index in 0..8 {
        joined.serve(half(index * 4));
    }
    assert_eq!(joined.device().written().medium_sectors, 32);
    let mut apart = driver(&[]);
    for index in 0..8 {
        apart.serve(half(index * 400));
    }
    assert_eq!(apart.device().written().medium_sectors, 64);
}

// The fast flash of consumer drives: it fills, then writes slow down; idle time folds it.

const SIZE_BYTES: u64 = 40_000_000;
const SIZE_UNITS: u64 = SIZE_BYTES / 4096;
/// Time of eight units on eight dies that program in 400 us.
const SLOW_UNIT_NS: f64 = 400e3 / 32.0;

fn device() -> Ssd {
    let table =
        "[slc_cache]\nsize_mb = 40\nfull_size_mb = 10\nprogram_us = 100\nidle_ms = 50\n[cleaning]";
    ssd(&[("[cleaning]", table)])
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
    let mut device = device();
    let (first, now) = write_units(&mut device, 0, SIZE_UNITS * 9 / 10);
    assert_near(first, HOST_UNIT_NS);
    let (_, now) = write_units(&mut device, now, SIZE_UNITS / 10 + 1000);
    let (second, _) = write_units(&mut device, now, 5_000);
    assert_near(second, SLOW_UNIT_NS);
}

#[test]
fn idle_time_folds_and_writes_are_fast_again() {
    let mut device = device();
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
    let mut device = device();
    device.precondition(WORN);
    let (first, _) = write_units(&mut device, 0, 5_000);
    assert!(first > SLOW_UNIT_NS, "{first} ns a unit");
}

// The simplest models, memory and a solid-state disk without a translation layer: latency, parallelism, link, cache.

const PLAIN: &str = r#"
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

fn plain(changes: &[(&str, &str)]) -> VirtualTimeDriver<Box<dyn tierwise_device::Device>> {
    let text = changes
        .iter()
        .fold(PLAIN.to_owned(), |text, (old, new)| text.replace(old, new));
    VirtualTimeDriver::new(
        Profile::parse(&sourced(&text), "test.toml")
            .expect("a valid profile")
            .build(0),
    )
}

#[test]
fn a_read_takes_overhead_flash_and_link() {
    assert_eq!(
        plain(&[]).serve(request(Op::Read, 0, 8)),
        10_000 + 100_000 + 8_000
    );
}

#[test]
fn stripes_are_read_by_channels_in_parallel() {
    assert_eq!(
        plain(&[]).serve(request(Op::Read, 0, 32)),
        10_000 + 100_000 + 32_000
    );
    assert_eq!(
        plain(&[]).serve(request(Op::Read, 0, 40)),
        10_000 + 200_000 + 40_000
    );
    assert_eq!(
        plain(&[("channels = 4", "channels = 1")]).serve(request(Op::Read, 0, 32)),
        10_000 + 400_000 + 32_000
    );
}

#[test]
fn one_channel_serves_in_order_of_arrival() {
    let mut driver = plain(&[]);
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
    let mut volatile = plain(&[]);
    assert_eq!(volatile.serve(request(Op::Write, 0, 8)), 20_000 + 8_000);
    assert_eq!(volatile.serve(Request::FLUSH), 1_000_000 + 30_000);
    let mut protected = plain(&[("protection = false", "protection = true")]);
    protected.serve(request(Op::Write, 0, 8));
    assert_eq!(protected.serve(Request::FLUSH), 30_000);
}

#[test]
fn without_a_cache_or_with_forced_access_a_write_is_programmed_first() {
    let mut uncached = plain(&[("write_cache_kib = 64", "write_cache_kib = 0")]);
    assert_eq!(
        uncached.serve(request(Op::Write, 0, 8)),
        20_000 + 8_000 + 1_000_000
    );
    let forced = Request {
        fua: true,
        ..request(Op::Write, 0, 8)
    };
    assert_eq!(plain(&[]).serve(forced), 20_000 + 8_000 + 1_000_000);
}

#[test]
fn a_full_cache_writes_at_the_pace_of_the_flash() {
    let mut driver = plain(&[]);
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

fn memory(name: &str) -> VirtualTimeDriver<Box<dyn tierwise_device::Device>> {
    VirtualTimeDriver::new(shipped(name).build(1))
}

#[test]
fn one_request_takes_latency_and_transfer() {
    let mut driver = memory("ssd-dram-fc");
    // 8 KiB at 200 MB/s take 40.96 us, the latency is 50 us.
    assert_eq!(driver.serve(request(Op::Read, 0, 16)), 90_960);
    assert_eq!(driver.serve(request(Op::Write, 0, 16)), 90_960);
    assert_eq!(driver.serve(request(Op::Flush, 0, 0)), 20_000);
}

#[test]
fn latencies_overlap_and_the_link_is_shared_in_order_of_arrival() {
    let mut driver = memory("ssd-dram-fc");
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
    let mut driver = memory("zero");
    for op in [Op::Read, Op::Write, Op::Flush, Op::Discard] {
        assert_eq!(driver.serve(request(op, 0, 2048)), 0);
    }
}
