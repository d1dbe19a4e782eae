//! When a disk reads ahead and what it keeps, checked by which reads need the medium.

use tierwise_device::{Driver, Nanos, Op, Profile, Request};

const SECTORS: u32 = 8;
/// First sector of a track in the middle of the disk's only zone.
const TRACK: u64 = 200 * 100_000;
const IDLE_NS: Nanos = 50_000_000;

fn profile(mode: &str, settle_us: u32) -> Profile {
    let text = format!(
        "kind = \"hdd\"\nsummary = \"made up for tests\"\nwrite_cache = false\n\
         [mechanics]\nrpm = 6000\nsurfaces = 2\nhead_switch_us = 1000\nwrite_settle_us = 0\n\
         read_settle_us = {settle_us}\nserpentine = false\n\
         [seek]\ncurve = \"table\"\ntable_us = [[1, 1000], [100000, 10000]]\n\
         [[zones]]\nfirst_cylinder = 0\ncylinders = 100000\nsectors_per_track = 200\ntrack_skew_sectors = 30\n\
         cylinder_skew_sectors = 30\n\
         [cache]\nsegments = 4\nsegment_sectors = 400\nreadahead_sectors = 200\nwrite_sectors = 100\n\
         write_segments = 1\n{mode}\n\
         [bus]\nsector_us = 10\n\
         [queue]\ndepth = 1\npolicy = \"fcfs\"\nage_limit_us = 1e6\n\
         [overhead]\nread_hit_after_read_us = 100\nread_hit_after_write_us = 100\nread_miss_after_read_us = 0\n\
         read_miss_after_write_us = 0\nwrite_hit_after_read_us = 100\nwrite_hit_after_write_us = 100\n\
         write_miss_after_read_us = 100\nwrite_miss_after_write_us = 100\nread_completion_us = 0\n\
         write_completion_us = 0\nflush_us = 0\n\
         [source]\nmechanics = \"made up for tests\"\nseek = \"made up for tests\"\nzones = \"made up for tests\"\ncache = \"made up for tests\"\nbus = \"made up for tests\"\n\
         queue = \"made up for tests\"\noverhead = \"made up for tests\"\n"
    );
    Profile::parse(&text, "test").expect("a valid profile")
}

/// Whether each of the reads, with idle time between them, is a hit: overhead and bus, no mechanics.
fn hits(mode: &str, idle_ns: Nanos, sectors: &[u64]) -> Vec<bool> {
    let mut driver = Driver::new(profile(mode, 0).build(1));
    let mut serve = |&sector: &u64| {
        let (op, sectors, fua) = (Op::Read, SECTORS, false);
        let service = driver.serve(Request {
            op,
            sector,
            sectors,
            fua,
        });
        driver.run_until(driver.now() + idle_ns);
        service == 100_000 + 10_000 * u64::from(SECTORS)
    };
    sectors.iter().map(&mut serve).collect()
}

#[test]
fn a_disk_that_waits_for_a_sequence_reads_ahead_behind_its_second_read() {
    let run = [TRACK, TRACK + 8, TRACK + 16, TRACK + 24];
    assert_eq!(hits("", IDLE_NS, &run), [false, true, true, true]);
    let adaptive = "readahead_if_sequential = true";
    assert_eq!(hits(adaptive, IDLE_NS, &run), [false, false, true, true]);
    let gaps = [TRACK, TRACK + 16, TRACK + 32, TRACK + 48];
    assert_eq!(hits(adaptive, IDLE_NS, &gaps), [false; 4]);
}

#[test]
fn reading_on_arrival_keeps_the_whole_track_after_a_turn_and_no_more() {
    let mode = "read_on_arrival = true";
    let middle = TRACK + 100;
    let around = [middle, TRACK, TRACK + 192, TRACK + 200];
    assert_eq!(hits(mode, IDLE_NS, &around), [false, true, true, false]);
    let before = [middle, TRACK - 8];
    assert_eq!(hits(mode, IDLE_NS, &before), [false, false]);
    assert_eq!(hits("", IDLE_NS, &[middle, TRACK]), [false, false]);
}

#[test]
fn what_has_not_passed_yet_is_not_in_the_buffer() {
    let mode = "read_on_arrival = true";
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
        let none = "readahead_if_sequential = true";
        let mut driver = Driver::new(profile(none, settle_us).build(1));
        let read = |sector| Request {
            op: Op::Read,
            sector,
            sectors: SECTORS,
            fua: false,
        };
        driver.serve(read(TRACK));
        driver.serve(read(TRACK + 110))
    };
    let turn_ns = 10_000_000;
    assert_eq!(second(6_000), second(0) + turn_ns);
}
