//! When a disk reads ahead and what it keeps, checked by which reads need the medium.

use crate::disk::{OUTER_CYLINDER, profile, request};
use tierwise_device::{Driver, Nanos, Op};

const SECTORS: u32 = 8;
/// First sector of a track in the middle of the disk's outer zone.
const TRACK: u64 = 200 * 50_000;
const IDLE_NS: Nanos = 50_000_000;

/// Whether each of the reads, with idle time between them, is a hit: overhead and bus, no mechanics.
fn hits(mode: &[(&str, &str)], idle_ns: Nanos, sectors: &[u64]) -> Vec<bool> {
    let mut driver = Driver::new(profile(mode).build(1));
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
        let mut driver = Driver::new(profile(&mode).build(1));
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
        let mut driver = Driver::new(profile(&mode).build(1));
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
        let mut driver = Driver::new(profile(&[]).build(1));
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
        let mut driver = Driver::new(profile(&mode).build(1));
        driver.serve(request(Op::Read, TRACK, SECTORS));
        driver.run_until(driver.now() + IDLE_NS);
        driver.serve(request(Op::Read, sector, SECTORS))
    };
    assert_eq!(second(TRACK + 8), 180_000);
    assert_eq!(second(TRACK + 16), 380_000);
}
