//! In what order a disk serves queued commands, and whom a flush makes wait.

use tierwise_device::hdd::SeekCurve;
use tierwise_device::{Completion, Device, Driver, Nanos, Op, Request};

use crate::disk::{OUTER_CYLINDER, profile, request};

/// Time at which each of the requests completes, all submitted at time 0, in the order given.
fn completions(changes: &[(&str, &str)], requests: &[Request]) -> Vec<Nanos> {
    let mut device = profile(changes).build(1);
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
        let mut driver = Driver::new(profile(&[]).build(1));
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
    let mut driver = Driver::new(profile(&[("sector_us", sector_us)]).build(1));
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
        let mut driver = Driver::new(profile(&[("sector_us", sector_us)]).build(1));
        driver.serve(request(Op::Read, 0, 100))
    };
    assert_eq!(service("10"), service("0") + 10_000);
    assert_eq!(service("100"), service("0") + 5_000_000);
}
