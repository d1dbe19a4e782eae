//! Disks: what physics says of shipped ones, and the order, caches and transfers of one with round numbers.

use tierwise_device::hdd::SeekCurve;
use tierwise_device::{Completion, Device, Nanos, Op, Request, VirtualTimeDriver};

use crate::support::*;

const PAGE_SECTORS: u32 = 16;
const TURN_NS: f64 = 60e9 / 7200.0;

fn page(op: Op, sector: u64) -> Request {
    Request::new(op, sector, PAGE_SECTORS)
}

/// Appends a second for one writer that flushes after each; `step` sectors from one page to the next.
fn appends_per_s(name: &str, step: u64, host_ns: u64) -> f64 {
    let mut driver = VirtualTimeDriver::new(shipped(name).build(3));
    let count = 2_000;
    for append in 0..count {
        driver.serve(page(Op::Write, 1_000_000 + append * step));
        driver.serve(Request::FLUSH);
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
    let mut driver = VirtualTimeDriver::new(shipped("hdd-7k2-sata-2009").build(3));
    let write = driver.serve(page(Op::Write, 1_000_000));
    assert!(write < 500_000, "a cached write takes {write} ns");
    let flush = driver.serve(Request::FLUSH);
    assert!(
        flush > 500_000,
        "the flush must write to the medium, took {flush} ns"
    );
    assert!(
        driver.serve(Request::FLUSH) < 200_000,
        "nothing is left to flush"
    );
}

#[test]
fn forced_unit_access_passes_the_write_cache() {
    let mut driver = VirtualTimeDriver::new(shipped("hdd-7k2-sata-2009").build(3));
    let mut total = 0;
    for index in 0..50 {
        let write = page(Op::Write, 900_000_000 - index * 9_999_991);
        total += driver.serve(Request { fua: true, ..write });
    }
    assert!(total / 50 > 4_000_000, "mean {} ns", total / 50);
}

#[test]
fn random_writes_take_seek_half_a_turn_and_transfer() {
    let profile = shipped("hdd-7k2");
    let mut driver = VirtualTimeDriver::new(profile.build(1));
    let capacity = driver.device().capacity_sectors();
    let (count, mut sector) = (5_000, 1);
    for _ in 0..count {
        sector = (sector * 48_271) % 2_147_483_647;
        driver.serve(page(Op::Write, sector * 16 % (capacity - 16)));
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
    let mut driver = VirtualTimeDriver::new(shipped("hdd-7k2").build(1));
    let (count, sectors) = (2_000, 256);
    for index in 0..count {
        driver.serve(Request::new(Op::Read, index * 256, sectors));
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
        let mut driver = VirtualTimeDriver::new(shipped("hdd-7k2").build(1));
        let mut sector = 7;
        for _ in 0..64 / depth {
            for _ in 0..depth {
                sector = (sector * 48_271) % 1_900_000_000;
                driver.submit(page(Op::Read, sector));
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
        let mut driver = VirtualTimeDriver::new(shipped("hdd-7k2").build(1));
        driver.run_until(start);
        driver.serve(page(Op::Read, 5_000_000))
    };
    let turns = |count: f64| (count * TURN_NS).round() as u64;
    assert!(read_at(0).abs_diff(read_at(turns(3.0))) < 10);
    assert!(read_at(0).abs_diff(read_at(turns(2.5))) > 1_000_000);
}

// In what order a disk serves queued commands, and whom a flush makes wait.

/// Time at which each of the requests completes, all submitted at time 0, in the order given.
fn completions(changes: &[(&str, &str)], requests: &[Request]) -> Vec<Nanos> {
    let mut device = disk(changes).build(1);
    for (id, &request) in requests.iter().enumerate() {
        device.submit(0, id as u64, request);
    }
    let mut all: Vec<Completion> = Vec::new();
    while let Some(event) = device.next_event() {
        device.advance(event, &mut all);
    }
    all.sort_by_key(|completion| completion.id);
    all.iter().map(|completion| completion.at).collect()
}

/// Indices of the requests in order of completion.
fn order(changes: &[(&str, &str)], requests: &[Request]) -> Vec<usize> {
    let at = completions(changes, requests);
    let mut order: Vec<usize> = (0..at.len()).collect();
    order.sort_by_key(|&index| at[index]);
    order
}

fn reads(cylinders: &[u64]) -> Vec<Request> {
    let read = |&cylinder: &u64| request(Op::Read, cylinder * OUTER_CYLINDER, 8);
    cylinders.iter().map(read).collect()
}

#[test]
fn first_come_first_served_keeps_the_order() {
    let requests = reads(&[20_000, 100, 40_000, 19_000]);
    assert_eq!(order(&[], &requests), [0, 1, 2, 3]);
}

#[test]
fn the_more_a_policy_knows_the_sooner_all_is_done() {
    let scattered: Vec<u64> = (1..200u64).map(|index| index * 30_911 % 49_999).collect();
    let requests = reads(&scattered);
    let last = |policy| {
        let changes = [("policy", policy), ("depth", "32")];
        completions(&changes, &requests).into_iter().max()
    };
    let (fcfs, sptf) = (last("\"fcfs\""), last("\"sptf\""));
    assert!(sptf < fcfs, "{sptf:?}, {fcfs:?}");
}

#[test]
fn a_command_past_its_age_limit_is_next() {
    // The distant read is older than the near ones; it may wait no longer than one command takes.
    let requests = reads(&[20_000, 45_000, 20_001, 20_002, 20_003]);
    let sptf = ("policy", "\"sptf\"");
    assert_eq!(order(&[sptf], &requests), [0, 2, 3, 4, 1]);
    assert_eq!(
        order(&[sptf, ("age_limit_us", "1000")], &requests)[..2],
        [0, 1]
    );
}

/// A cached write, a flush and a read elsewhere: when the flush and when the read ends.
fn flush_and_read(flush: &str) -> (Nanos, Nanos) {
    let requests = [
        request(Op::Write, 0, 8),
        request(Op::Write, 30_000 * OUTER_CYLINDER, 8),
        request(Op::Flush, 0, 0),
        request(Op::Read, 0, 8),
    ];
    let at = completions(&[("write_cache", "true"), ("flush", flush)], &requests);
    assert!(at[1] < 1_000_000, "a cached write took {} ns", at[1]);
    (at[2], at[3])
}

#[test]
fn a_queued_flush_lets_a_read_from_the_buffer_go_on() {
    let (flush, read) = flush_and_read("\"queued\"");
    assert!(
        read < 1_000_000 && flush > 5_000_000,
        "read {read} ns, flush {flush} ns"
    );
}

#[test]
fn a_flush_that_drains_holds_back_what_comes_after_it() {
    let (flush, read) = flush_and_read("\"drain\"");
    assert!(
        flush > 5_000_000 && read > flush,
        "read {read} ns, flush {flush} ns"
    );
    let clean = [request(Op::Flush, 0, 0), request(Op::Flush, 0, 0)];
    assert_eq!(
        completions(&[("flush", "\"drain\"")], &clean),
        [200_000, 400_000]
    );
    assert_eq!(completions(&[], &clean), [200_000, 200_000]);
}

#[test]
fn a_queued_flush_lets_queued_commands_between_its_writes() {
    let mut requests: Vec<Request> = (0..4)
        .map(|index| request(Op::Write, (10_000 * index + 5_000) * OUTER_CYLINDER, 8))
        .collect();
    requests.push(request(Op::Flush, 0, 0));
    requests.extend(reads(&[0, 10_000, 20_000, 30_000]));
    let at = completions(&[("write_cache", "true")], &requests);
    assert!(
        at[5] < at[4],
        "first read at {} ns, flush at {} ns",
        at[5],
        at[4]
    );
    let drained = completions(
        &[("write_cache", "true"), ("flush", "\"drain\"")],
        &requests,
    );
    assert!(drained[4] < drained[5]);
}

/// Whoever reorders must not lose a turn by it: the next read in sequence needs no positioning.
#[test]
fn reads_in_sequence_are_not_reordered() {
    let read = |index: u64| request(Op::Read, index * 64, 64);
    let requests: Vec<Request> = (0..200).map(read).collect();
    let order = order(&[("policy", "\"sptf\""), ("depth", "8")], &requests);
    assert!(order.is_sorted(), "{order:?}");
}

// The two ways to give a seek curve, against what their sources say of them.

fn near(value: f64, expected: f64, tolerance: f64) {
    assert!(
        (value - expected).abs() <= tolerance,
        "{value}, expected {expected}"
    );
}

#[test]
fn a_table_is_met_and_linear_between_its_rows() {
    let curve = SeekCurve::Table(vec![(1.0, 1000.0), (11.0, 3000.0), (101.0, 6000.0)]);
    for (distance, time_us) in [
        (1.0, 1000.0),
        (6.0, 2000.0),
        (11.0, 3000.0),
        (101.0, 6000.0),
    ] {
        near(curve.time_us(distance), time_us, 1e-9);
    }
    // Beyond the last row with the slope of the last two.
    near(curve.time_us(131.0), 7000.0, 1e-9);
}

/// Lee and Katz chose their coefficients so that the curve has the three times of the specification sheet; the
/// average is over random pairs of cylinders, of which a distance d has the share 2·(n − d)/n².
#[test]
fn the_curve_of_lee_and_katz_has_the_three_times_it_is_given() {
    let cylinders = 20_000.0;
    let curve = SeekCurve::LeeKatz {
        single_us: 800.0,
        average_us: 8500.0,
        full_us: 18_000.0,
        cylinders,
    };
    near(curve.time_us(1.0), 800.0, 1e-9);
    near(curve.time_us(cylinders), 18_000.0, 5.0);
    let share = |distance: f64| 2.0 * (cylinders - distance) / (cylinders * cylinders);
    let average: f64 = (1..cylinders as u32)
        .map(f64::from)
        .map(|distance| share(distance) * curve.time_us(distance))
        .sum();
    near(average, 8500.0, 10.0);
}

// Transfers: the media rate of each zone, and the bus beside the medium.

/// First sector of the inner zone: 50,000 cylinders of 2 tracks of 200.
const INNER: u64 = 50_000 * OUTER_CYLINDER;

#[test]
fn each_zone_has_its_own_media_rate() {
    // A track takes its turn and the skew to the next: 230 or 115 sector times for 200 or 100 sectors.
    for (first, sector_ns, track) in [(0, 50_000, 200), (INNER, 100_000, 100)] {
        let mut driver = VirtualTimeDriver::new(disk(&[]).build(1));
        driver.serve(request(Op::Read, first, 1));
        let start = driver.now();
        let tracks = 400;
        for index in 0..tracks {
            driver.serve(request(Op::Read, first + 1 + index * track, track as u32));
        }
        let per_track = (driver.now() - start) / tracks;
        let expected = sector_ns * track * 115 / 100;
        assert!(
            per_track.abs_diff(expected) < expected / 100,
            "{per_track} ns a track from {first}, expected {expected}"
        );
    }
}

/// Mean service time of writes of `sectors` on one track, at times spread over the turn.
fn mean_write_ns(sector_us: &str, sectors: u32) -> u64 {
    let mut driver = VirtualTimeDriver::new(disk(&[("sector_us", sector_us)]).build(1));
    driver.serve(request(Op::Write, 0, 1));
    let count = 500;
    let serve = |index: u64| {
        driver.run_until(driver.now() + index * 6_180_340 % 10_000_000);
        driver.serve(request(Op::Write, index % 2 * 60, sectors))
    };
    (1..=count).map(serve).sum::<u64>() / count
}

#[test]
fn a_write_streams_from_the_bus_to_the_medium() {
    // 100 sectors pass in 5 ms. A bus twice as fast is not felt; one half as fast holds back the medium by the
    // 5 ms that it lags, not by the 10 ms that it takes.
    let medium = mean_write_ns("0.1", 100);
    assert!(mean_write_ns("25", 100).abs_diff(medium) < 200_000);
    let late = mean_write_ns("100", 100) - medium;
    assert!((4_000_000..6_000_000).contains(&late), "{late} ns later");
}

#[test]
fn a_read_from_the_medium_ends_with_the_slower_of_bus_and_medium() {
    let service = |sector_us| {
        let mut driver = VirtualTimeDriver::new(disk(&[("sector_us", sector_us)]).build(1));
        driver.serve(request(Op::Read, 0, 100))
    };
    assert_eq!(service("10"), service("0") + 10_000);
    assert_eq!(service("100"), service("0") + 5_000_000);
}

// When a disk reads ahead and what it keeps, checked by which reads need the medium.

const SECTORS: u32 = 8;
/// First sector of a track in the middle of the disk's outer zone.
const TRACK: u64 = 200 * 50_000;
const IDLE_NS: Nanos = 50_000_000;

/// Whether each of the reads, with idle time between them, is a hit: overhead and bus, no mechanics.
fn hits(mode: &[(&str, &str)], idle_ns: Nanos, sectors: &[u64]) -> Vec<bool> {
    let mut driver = VirtualTimeDriver::new(disk(mode).build(1));
    let mut serve = |&sector: &u64| {
        let service = driver.serve(request(Op::Read, sector, SECTORS));
        driver.run_until(driver.now() + idle_ns);
        service == 100_000 + 10_000 * u64::from(SECTORS)
    };
    sectors.iter().map(&mut serve).collect()
}

#[test]
fn a_disk_that_waits_for_a_sequence_reads_ahead_behind_its_second_read() {
    let run = [TRACK, TRACK + 8, TRACK + 16, TRACK + 24];
    assert_eq!(hits(&[], IDLE_NS, &run), [false, true, true, true]);
    let adaptive = &[("readahead_if_sequential", "true")];
    assert_eq!(hits(adaptive, IDLE_NS, &run), [false, false, true, true]);
    let gaps = [TRACK, TRACK + 16, TRACK + 32, TRACK + 48];
    assert_eq!(hits(adaptive, IDLE_NS, &gaps), [false; 4]);
}

#[test]
fn reading_on_arrival_keeps_the_whole_track_after_a_turn_and_no_more() {
    let mode = &[("read_on_arrival", "true")];
    let middle = TRACK + 100;
    let around = [middle, TRACK, TRACK + 192, TRACK + 200];
    assert_eq!(hits(mode, IDLE_NS, &around), [false, true, true, false]);
    let before = [middle, TRACK - 8];
    assert_eq!(hits(mode, IDLE_NS, &before), [false, false]);
    assert_eq!(hits(&[], IDLE_NS, &[middle, TRACK]), [false, false]);
}

#[test]
fn what_has_not_passed_yet_is_not_in_the_buffer() {
    let mode = &[("read_on_arrival", "true")];
    let backwards = [TRACK + 8, TRACK];
    let soon = |place: u64| hits(mode, 1, &[TRACK + place, TRACK + place - 8])[1];
    let kept = (8..190).step_by(8).filter(|&place| soon(place)).count();
    assert!(
        kept > 0 && kept < 23,
        "{kept} of 23 sectors before the read passed before it"
    );
    assert_eq!(hits(mode, IDLE_NS, &backwards), [false, true]);
}

#[test]
fn settling_delays_a_miss_on_the_track_of_the_one_before() {
    // Two reads of one track, forward by half a turn and a little: settling takes longer than that.
    let second = |settle_us| {
        let mode = [
            ("readahead_if_sequential", "true"),
            ("read_settle_us", settle_us),
        ];
        let mut driver = VirtualTimeDriver::new(disk(&mode).build(1));
        driver.serve(request(Op::Read, TRACK, SECTORS));
        driver.serve(request(Op::Read, TRACK + 110, SECTORS))
    };
    let turn_ns = 10_000_000;
    assert_eq!(second("6000"), second("0") + turn_ns);
}

#[test]
fn reading_ahead_ends_where_the_mode_says() {
    // From the middle of a cylinder's first track, of 200 sectors.
    let cylinder = TRACK / OUTER_CYLINDER * OUTER_CYLINDER;
    let hit = |mode: &str, sector: u64| {
        let mode = &[("readahead_to", mode), ("readahead_sectors", "400")];
        hits(mode, IDLE_NS, &[cylinder + 100, cylinder + sector])[1]
    };
    let ends = |mode| [192, 200, 392, 400].map(|sector| hit(mode, sector));
    assert_eq!(ends("\"track\""), [true, false, false, false]);
    assert_eq!(ends("\"cylinder\""), [true, true, true, false]);
    assert_eq!(ends("\"segment\""), [true, true, true, true]);
}

#[test]
fn a_stream_from_the_track_before_is_read_ahead_to_the_end_of_the_next_track() {
    let cylinder = TRACK / OUTER_CYLINDER * OUTER_CYLINDER;
    let mode = &[("readahead_to", "\"track\""), ("readahead_sectors", "400")];
    // The first read crosses from the cylinder's first track to its second.
    let hit = |sector: u64| hits(mode, IDLE_NS, &[cylinder + 196, cylinder + sector])[1];
    assert_eq!([392, 400, 592, 600].map(hit), [true, true, true, false]);
}

#[test]
fn a_read_partly_in_the_buffer_waits_for_its_command_before_the_head_moves_on() {
    let service = |miss_us| {
        let mode = [
            ("readahead_to", "\"track\""),
            ("read_miss_after_read_us", miss_us),
        ];
        let mut driver = VirtualTimeDriver::new(disk(&mode).build(1));
        driver.serve(request(Op::Read, TRACK + 100, SECTORS));
        driver.run_until(driver.now() + IDLE_NS);
        driver.serve(request(Op::Read, TRACK + 196, SECTORS))
    };
    let turn_ns = 10_000_000;
    assert_eq!(service("9999"), service("0") + turn_ns);
}

#[test]
fn a_write_takes_only_its_own_sectors_out_of_a_segment() {
    let read = |sector| {
        let mut driver = VirtualTimeDriver::new(disk(&[]).build(1));
        driver.serve(request(Op::Read, TRACK, 100));
        driver.run_until(driver.now() + IDLE_NS);
        driver.serve(request(Op::Write, TRACK + 80, 10));
        driver.serve(request(Op::Read, sector, SECTORS))
    };
    let hit_ns = 100_000 + 10_000 * u64::from(SECTORS);
    // The read went on to 300; 90 to 300 is the longer part, and what was written is kept too.
    assert_eq!(read(TRACK + 120), hit_ns);
    assert_eq!(read(TRACK + 80), hit_ns);
    assert!(
        read(TRACK + 78) > hit_ns,
        "sectors on both sides of an edge"
    );
    assert!(read(TRACK + 20) > hit_ns, "the shorter part");
}

#[test]
fn a_hit_elsewhere_takes_the_longer_of_both_overheads() {
    let mode = [
        ("read_hit_after_read_us", "100"),
        ("read_hit_after_write_us", "300"),
    ];
    let second = |sector| {
        let mut driver = VirtualTimeDriver::new(disk(&mode).build(1));
        driver.serve(request(Op::Read, TRACK, SECTORS));
        driver.run_until(driver.now() + IDLE_NS);
        driver.serve(request(Op::Read, sector, SECTORS))
    };
    assert_eq!(second(TRACK + 8), 180_000);
    assert_eq!(second(TRACK + 16), 380_000);
}
