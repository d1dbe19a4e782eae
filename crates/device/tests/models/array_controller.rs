//! The controller's write cache, and the rebuilding of a failed member.

use crate::array_support::{FLUSH, Random, array, closed_loop, controller, rate, request};
use tierwise_device::{Device, Driver, Nanos, Op, SECTOR_BYTES};

const DISK: &str = "hdd-10k-18g-fc";

/// Requests completed in each second of virtual time.
fn by_second(times: &[Nanos]) -> Vec<usize> {
    let seconds = times.last().map_or(0, |last| last / 1_000_000_000);
    let mut counts = vec![0; seconds as usize];
    for at in times {
        if let Some(count) = counts.get_mut((at / 1_000_000_000) as usize) {
            *count += 1;
        }
    }
    counts
}

/// Half of 64 MiB holds 4,096 writes of 8 KiB. They are taken as fast as the link and the controller allow; then
/// each waits for room, which destaging makes at the rate at which the members take the same writes without a
/// cache, as many at a time.
#[test]
fn writes_are_fast_until_the_share_is_dirty_and_then_as_slow_as_the_members() {
    let cached = array(DISK, "raid5", 7, &controller(true));
    let mut device = cached.build(1);
    let mut writes = Random::new(Op::Write, 16, device.capacity_sectors(), 3);
    let times = closed_loop(&mut device, &mut writes, 4, 16_000, 0);
    let members = rate(
        &array(DISK, "raid5", 7, "stripe_kib = 64\n"),
        Op::Write,
        16,
        32,
        8_000,
    );
    let per_second = by_second(&times);
    println!("writes in each second: {per_second:?}; members alone {members:.0}/s");
    let knee_s = times[4_095] as f64 / 1e9;
    assert!(
        knee_s < 0.2,
        "the room of 4,096 writes filled in {knee_s} s"
    );
    let after = &per_second[2..];
    let mean = after.iter().sum::<usize>() as f64 / after.len() as f64;
    let off = mean / members - 1.0;
    assert!(off.abs() < 0.05, "{mean} writes/s, members alone {members}");
    let least = *after.iter().min().expect("some seconds");
    assert!(least as f64 > 0.7 * members, "a second with {least} writes");
}

/// One writer at a time fills rows: whole rows go out without reads, with one chunk of parity for six of data.
#[test]
fn sequential_small_writes_leave_as_whole_stripes() {
    let cached = array(DISK, "raid5", 7, &controller(true));
    let mut driver = Driver::new(cached.build(1));
    for page in 0..4_800 {
        driver.serve(request(Op::Write, page * 16, 16));
    }
    driver.run_until_idle();
    let written = driver.device().written();
    assert_eq!(written.host_sectors, 4_800 * 16);
    assert_eq!(written.medium_sectors, 4_800 * 16 * 7 / 6);
}

/// Neighbouring writes that come in any order are joined before they leave.
#[test]
fn neighbours_are_joined_in_whatever_order_they_come() {
    let cached = array(DISK, "raid5", 7, &controller(true));
    let mut driver = Driver::new(cached.build(1));
    for page in (0..48).rev() {
        driver.serve(request(Op::Write, page * 16, 16));
    }
    driver.run_until_idle();
    assert_eq!(driver.device().written().medium_sectors, 48 * 16 * 7 / 6);
}

#[test]
fn writing_the_same_again_takes_no_room_and_is_read_back_from_the_cache() {
    let cached = array(DISK, "raid5", 7, &controller(true));
    let mut driver = Driver::new(cached.build(1));
    let mut longest = 0;
    for _ in 0..20_000 {
        longest = longest.max(driver.serve(request(Op::Write, 0, 16)));
    }
    // Overhead of 50 us and 20.5 us on the link.
    assert_eq!(longest, 70_480);
    assert_eq!(driver.serve(request(Op::Read, 4, 8)), 60_240);
    assert!(
        driver.serve(request(Op::Read, 4, 16)) > 100_000,
        "half is not there"
    );
}

#[test]
fn a_flush_empties_a_cache_that_is_not_protected() {
    let flush = |protected| {
        let mut driver = Driver::new(array(DISK, "raid5", 7, &controller(protected)).build(1));
        driver.serve(request(Op::Write, 1_000_000, 16));
        let dirty = driver.serve(FLUSH);
        (
            dirty,
            driver.serve(FLUSH),
            driver.device().written().medium_sectors,
        )
    };
    let (dirty, clean, medium) = flush(true);
    assert_eq!((dirty, clean, medium), (50_000, 50_000, 0));
    let (dirty, clean, medium) = flush(false);
    assert!(
        dirty > 6_000_000,
        "a read, a turn and a write take {dirty} ns"
    );
    // The members' own flush with nothing to write takes 60 us.
    assert_eq!((clean, medium), (110_000, 32));
}

#[test]
fn what_is_dirty_grows_old_and_leaves() {
    let mut driver = Driver::new(array(DISK, "raid5", 7, &controller(true)).build(1));
    driver.serve(request(Op::Write, 0, 16));
    driver.run_until(990_000_000);
    assert_eq!(driver.device().written().medium_sectors, 0);
    driver.run_until(1_100_000_000);
    assert_eq!(driver.device().written().medium_sectors, 32);
}

/// Time from the first request to the end of a rebuild, in seconds, beside a reader with think time.
fn rebuild_s(priority: &str, host: bool) -> f64 {
    let more = format!(
        "stripe_kib = 64\nfailed_members = 1\nrebuild_mb_per_s = 4\nrebuild_priority = {priority}\n"
    );
    let profile = array("small-disk", "raid5", 5, &more);
    let mut device = profile.build(1);
    let mut reads = Random::new(Op::Read, 16, device.capacity_sectors(), 1);
    let (mut done, mut now) = (Vec::new(), 0);
    device.submit(0, 0, request(Op::Read, 0, 16));
    while let Some(event) = device.next_event() {
        now = event;
        device.advance(now, &mut done);
        let rebuilding = device.written().medium_sectors < 480_000;
        for _ in done.drain(..).filter(|_| host && rebuilding) {
            device.submit(now, 0, reads.next().expect("a read"));
        }
    }
    assert_eq!(device.written().medium_sectors, 480_000, "the whole member");
    println!("rebuilt in {} s", now as f64 / 1e9);
    now as f64 / 1e9
}

/// 240 MB at 4 MB/s, where a small disk could move 8.
#[test]
fn an_idle_array_rebuilds_at_the_rate_given() {
    let seconds = rebuild_s("1.0", false);
    let expected = 480_000.0 * SECTOR_BYTES as f64 / 4e6;
    assert!(
        (seconds / expected - 1.0).abs() < 0.01,
        "{seconds} s, expected {expected}"
    );
}

/// Beside a host that always wants something, a fifth of the rate is kept.
#[test]
fn the_host_comes_before_the_rebuild_as_far_as_the_priority_says() {
    let seconds = rebuild_s("0.2", true);
    let expected = 5.0 * 480_000.0 * SECTOR_BYTES as f64 / 4e6;
    assert!(
        (seconds / expected - 1.0).abs() < 0.01,
        "{seconds} s, expected {expected}"
    );
}

#[test]
fn a_rebuild_slows_the_host_down() {
    let degraded = "stripe_kib = 64\nfailed_members = 1\n";
    let rebuilding = format!("{degraded}rebuild_mb_per_s = 4\nrebuild_priority = 1.0\n");
    let mean = |more: &str| {
        let profile = array("small-disk", "raid5", 5, more);
        // Far from the part that is rebuilt first, so that both arrays read alike but for the rebuild.
        let reads = Random::new(Op::Read, 16, 480_000, 1);
        let mut driver = Driver::new(profile.build(1));
        let far = reads.map(|read| request(Op::Read, 1_400_000 + read.sector, 16));
        far.take(300).map(|read| driver.serve(read)).sum::<Nanos>() / 300
    };
    let (alone, beside) = (mean(degraded), mean(&rebuilding));
    assert!(beside > alone * 5 / 4, "{beside} ns against {alone} ns");
}

#[test]
fn forced_unit_access_passes_a_cache_that_is_not_protected() {
    let serve = |protected| {
        let mut driver = Driver::new(array(DISK, "raid5", 7, &controller(protected)).build(1));
        let write = request(Op::Write, 1_000_000, 16);
        driver.serve(tierwise_device::Request { fua: true, ..write })
    };
    assert_eq!(serve(true), 70_480);
    assert!(serve(false) > 6_000_000);
}
