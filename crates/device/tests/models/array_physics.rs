//! What arithmetic says of arrays without a controller, checked on members whose times are known.

use tierwise_device::{Device, Nanos, Op, Profile, Request, VirtualTimeDriver};

use crate::support::*;

/// The member of most tests: 10,000 rpm, no write cache, nearest first among 64.
const DISK: &str = "hdd-10k-18g-fc";
const TURN_NS: f64 = 60e9 / 10_000.0;
const PAGE_SECTORS: u32 = 16;

fn one_disk() -> Profile {
    parse_array(&format!("like = \"{DISK}\"\n")).expect("a shipped profile")
}

/// Asserts that `value` is `expected` within a share `bound` of it.
fn assert_near(what: &str, value: f64, expected: f64, bound: f64) {
    let off = value / expected - 1.0;
    println!("{what}: {value:.1}, expected {expected:.1}, off by {off:+.4}");
    assert!(
        off.abs() <= bound,
        "{what}: {value}, expected {expected}, off by {off:+.3}"
    );
}

/// Time of one request on a device that nothing has touched.
fn first_ns(profile: &Profile, seed: u64, op: Op, sector: u64, sectors: u32) -> Nanos {
    VirtualTimeDriver::new(profile.build(seed)).serve(request(op, sector, sectors))
}

/// Random requests fall on members as balls on urns, so with 64 outstanding on each of four members none is ever
/// idle; what is lost is that nearest-first chooses from queues that differ in length. 4 % bounds that.
#[test]
fn a_stripe_reads_as_much_as_its_members_together() {
    let one = rate(&one_disk(), Op::Read, PAGE_SECTORS, 32, 4_000);
    let stripe = array(DISK, "raid0", 4, "stripe_kib = 64\n");
    let four = rate(&stripe, Op::Read, PAGE_SECTORS, 128, 16_000);
    assert_near("reads/s of four members", four, 4.0 * one, 0.04);
}

/// Reads go to the copy with fewer commands, so two members read as much as two disks; 5 % as above.
#[test]
fn a_mirror_reads_from_both_copies() {
    let one = rate(&one_disk(), Op::Read, PAGE_SECTORS, 16, 4_000);
    let two = rate(
        &array(DISK, "raid1", 2, ""),
        Op::Read,
        PAGE_SECTORS,
        32,
        8_000,
    );
    assert_near("reads/s of two copies", two, 2.0 * one, 0.05);
}

/// Members that turn together do everything alike.
#[test]
fn a_coupled_mirror_writes_as_one_member() {
    let mirror = array(DISK, "raid1", 2, "coupled = true\n");
    let capacity = mirror.capacity_bytes() / 512;
    let (mut one, mut both) = (
        VirtualTimeDriver::new(one_disk().build(5)),
        VirtualTimeDriver::new(mirror.build(5)),
    );
    for write in random_requests(Op::Write, PAGE_SECTORS, capacity, 9).take(500) {
        assert_eq!(both.serve(write), one.serve(write));
    }
}

/// Two members at a fixed angle `d` (in turns) wait the longer of two times: on average 1/2 + d (1 - d) turns,
/// and 2/3 over all angles, a sixth more than one. Over 150 arrays the standard error is 0.0061 turns, 4 % of a
/// sixth; the bound is three times that.
#[test]
fn an_uncoupled_mirror_writes_in_the_longer_of_two_waits() {
    let mean_over_arrays = |more: &str| {
        let mirror = array(DISK, "raid1", 2, more);
        let capacity = mirror.capacity_bytes() / 512;
        let mean = |seed| {
            let mut driver = VirtualTimeDriver::new(mirror.build(seed));
            let writes = random_requests(Op::Write, PAGE_SECTORS, capacity, seed);
            let total: Nanos = writes.take(50).map(|write| driver.serve(write)).sum();
            total as f64 / 50.0
        };
        (1..=150).map(mean).sum::<f64>() / 150.0
    };
    let longer = mean_over_arrays("") - mean_over_arrays("coupled = true\n");
    assert_near("ns longer, two waits", longer, TURN_NS / 6.0, 0.12);
}

/// Data and parity lie at the same place of two members, whose arms stand alike at the start. Both are read, and
/// then written when they come round again: the read's time and a turn, less that a read ends one sector later on
/// the bus, 5 us, and plus what is left of rounding.
#[test]
fn a_small_write_with_parity_takes_one_more_turn_than_a_read() {
    let raid5 = array(DISK, "raid5", 7, "stripe_kib = 64\ncoupled = true\n");
    let capacity = raid5.capacity_bytes() / 512;
    for (seed, write) in (1..200).zip(random_requests(Op::Write, PAGE_SECTORS, capacity, 4)) {
        let read = first_ns(&raid5, seed, Op::Read, write.sector, PAGE_SECTORS);
        let written = first_ns(&raid5, seed, Op::Write, write.sector, PAGE_SECTORS);
        let more = written as f64 - read as f64;
        assert!((more - TURN_NS).abs() < 10_000.0, "{more} ns more");
    }
}

/// Without a turn in common the write begins when the later of two reads is done, and ends a turn later on that
/// member. So its mean is that of a mirror's write, where both copies are waited for, and a turn.
#[test]
fn an_uncoupled_small_write_takes_the_longer_read_and_a_turn() {
    let mean = |profile: &Profile, span: u64| {
        let requests = random_requests(Op::Write, PAGE_SECTORS, span, 1);
        let times = (1..300).zip(requests).map(|(seed, write)| {
            first_ns(profile, seed, Op::Write, write.sector, PAGE_SECTORS) as f64
        });
        times.sum::<f64>() / 299.0
    };
    let raid5 = array(DISK, "raid5", 7, "stripe_kib = 64\n");
    let mirror = array(DISK, "raid1", 2, "");
    let small = mean(&raid5, raid5.capacity_bytes() / 512);
    let both = mean(&mirror, mirror.capacity_bytes() / 512);
    assert_near("ns of a small write", small, both + TURN_NS, 0.04);
}

/// A whole stripe is written without reads, one part to each member: as much data a second as one member fewer
/// than there are. Each request is 16 whole rows, so that a member writes 1 MiB at a time, as the single disk does.
#[test]
fn whole_stripes_are_written_at_the_rate_of_all_members_but_one() {
    let sequential = |profile: &Profile, sectors: u32| {
        let mut device = profile.build(2);
        let mut writes = (0..).map(|n| request(Op::Write, n * u64::from(sectors), sectors));
        let times = closed_loop(&mut device, &mut writes, 2, 60, 0);
        60.0 * f64::from(sectors) * 512e3 / *times.last().expect("a time") as f64
    };
    let one = sequential(&one_disk(), 2048);
    let raid5 = array(DISK, "raid5", 7, "stripe_kib = 64\ncoupled = true\n");
    let seven = sequential(&raid5, 6 * 2048);
    println!("one disk writes {one:.1} MB/s, seven in RAID 5 {seven:.1}");
    assert_near("MB/s of whole stripes", seven, 6.0 * one, 0.01);
}

/// A read of what was on the failed member takes one of each of the others, so each read is on average
/// 2 (n - 1) / n reads on n - 1 members: half the rate of the whole array, if no member is ever idle and none
/// gains from choosing among its commands.
#[test]
fn a_degraded_array_reads_half_as_much() {
    let rate = |more: &str| {
        let raid5 = array("fcfs-disk", "raid5", 7, more);
        rate(&raid5, Op::Read, PAGE_SECTORS, 300, 8_000)
    };
    let whole = rate("stripe_kib = 64\n");
    let degraded = rate("stripe_kib = 64\nfailed_members = 1\n");
    assert_near("reads/s, degraded", degraded, whole / 2.0, 0.05);
}

/// What a read of the failed member takes: with members that serve everything at the same time, as long as any
/// other; with disks, the longest of six uncoupled waits, 6/7 of a turn, where one waits a half.
#[test]
fn a_degraded_read_waits_for_the_slowest_of_the_others() {
    let degraded = array(DISK, "raid5", 7, "stripe_kib = 64\nfailed_members = 1\n");
    let mean = |member: u64| {
        // Row 0 has its data on members 0 to 5 in order; only member 0 has failed.
        let times = (1..400)
            .map(|seed| first_ns(&degraded, seed, Op::Read, member * 128, PAGE_SECTORS) as f64);
        times.sum::<f64>() / 399.0
    };
    let longer = mean(0) - mean(1);
    assert_near(
        "ns longer, six waits",
        longer,
        TURN_NS * (6.0 / 7.0 - 0.5),
        0.08,
    );
}

#[test]
fn a_small_write_with_parity_writes_twice() {
    let raid5 = array(DISK, "raid5", 7, "stripe_kib = 64\n");
    let mut device = raid5.build(1);
    let mut writes = random_requests(Op::Write, PAGE_SECTORS, device.capacity_sectors(), 1);
    closed_loop(&mut device, &mut writes, 1, 200, 0);
    // One more is on its way: its data may be written and its parity not.
    let amplification = device.written().amplification().expect("writes");
    assert!((1.98..=2.0).contains(&amplification), "{amplification}");
}

/// One of 1,000 members is found as fast as one of few; their times are their own.
#[test]
fn many_members_work_at_the_same_time() {
    let stripe = array("small-ram", "raid0", 1000, "stripe_kib = 4\n");
    let mut requests = (0..).map(|n| request(Op::Read, n * 8, 8));
    let times = closed_loop(&mut stripe.build(1), &mut requests, 1000, 5000, 0);
    assert_eq!(times.last(), Some(&500_000), "five rounds of 100 us");
    let mirror_of_stripes = array("pair", "raid0", 2, "stripe_kib = 4\n");
    let mean = mean_ns(
        &mirror_of_stripes,
        random_requests(Op::Write, 8, 10_000, 1),
        100,
    );
    assert_eq!(mean, 100_000.0, "arrays of arrays add nothing");
}

// The controller's write cache.

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
    let mut writes = random_requests(Op::Write, 16, device.capacity_sectors(), 3);
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
    let mut driver = VirtualTimeDriver::new(cached.build(1));
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
    let mut driver = VirtualTimeDriver::new(cached.build(1));
    for page in (0..48).rev() {
        driver.serve(request(Op::Write, page * 16, 16));
    }
    driver.run_until_idle();
    assert_eq!(driver.device().written().medium_sectors, 48 * 16 * 7 / 6);
}

#[test]
fn writing_the_same_again_takes_no_room_and_is_read_back_from_the_cache() {
    let cached = array(DISK, "raid5", 7, &controller(true));
    let mut driver = VirtualTimeDriver::new(cached.build(1));
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
        let mut driver =
            VirtualTimeDriver::new(array(DISK, "raid5", 7, &controller(protected)).build(1));
        driver.serve(request(Op::Write, 1_000_000, 16));
        let dirty = driver.serve(Request::FLUSH);
        (
            dirty,
            driver.serve(Request::FLUSH),
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
    let mut driver = VirtualTimeDriver::new(array(DISK, "raid5", 7, &controller(true)).build(1));
    driver.serve(request(Op::Write, 0, 16));
    driver.run_until(990_000_000);
    assert_eq!(driver.device().written().medium_sectors, 0);
    driver.run_until(1_100_000_000);
    assert_eq!(driver.device().written().medium_sectors, 32);
}

#[test]
fn forced_unit_access_passes_a_cache_that_is_not_protected() {
    let serve = |protected| {
        let mut driver =
            VirtualTimeDriver::new(array(DISK, "raid5", 7, &controller(protected)).build(1));
        let write = request(Op::Write, 1_000_000, 16);
        driver.serve(Request { fua: true, ..write })
    };
    assert_eq!(serve(true), 70_480);
    assert!(serve(false) > 6_000_000);
}
