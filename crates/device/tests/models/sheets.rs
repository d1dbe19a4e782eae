//! What the shipped profiles deliver, against their data sheets and what providers of volumes document.

use tierwise_device::{
    Completion, Device, DeviceParams, Nanos, Op, Precondition, Profile, Request, VirtualTimeDriver,
};

use crate::support::*;

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
    let mut driver = VirtualTimeDriver::new(shipped(name).build(1));
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
        let profile = shipped(name);
        let DeviceParams::Hdd(params) = profile.params() else {
            panic!("{name} is no disk");
        };
        let mut driver = VirtualTimeDriver::new(profile.build(1));
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

// Shipped profiles against the four lines of their data sheets: sequential and random, reads and writes.

const FRESH: Precondition = Precondition::Fresh;

/// Profile; sequential reads and writes in MB/s, random reads and writes of 4 KiB a second, then random reads and
/// writes one at a time (0 where the sheet says nothing of the kind); the state that the random writes are for; depth.
type Sheet = (&'static str, [f64; 6], Precondition, u64);

#[rustfmt::skip]
const SHEETS: [Sheet; 8] = [
    ("ssd-sata-dc", [500.0, 410.0, 75_000.0, 11_000.0, 0.0, 0.0], WORN, 32),
    ("ssd-nvme-dc", [3200.0, 2000.0, 637_000.0, 81_500.0, 12_987.0, 0.0], WORN, 256),
    ("ssd-nvme-dc-2020", [6500.0, 3500.0, 900_000.0, 200_000.0, 0.0, 0.0], WORN, 256),
    ("ssd-sata-consumer", [550.0, 520.0, 98_000.0, 90_000.0, 10_000.0, 42_000.0], FRESH, 32),
    ("ssd-nvme-consumer", [3500.0, 3300.0, 600_000.0, 550_000.0, 19_000.0, 60_000.0], FRESH, 128),
    ("ssd-optane", [2400.0, 2000.0, 550_000.0, 500_000.0, 108_300.0, 0.0], WORN, 16),
    ("ssd-sata-slc-2008", [250.0, 170.0, 35_000.0, 3_300.0, 0.0, 0.0], WORN, 32),
    ("ssd-pcie-slc-2008", [700.0, 550.0, 110_000.0, 100_000.0, 0.0, 0.0], FRESH, 32),
];

/// Sectors a second of `count` requests, `depth` at a time, after a quarter of them.
fn rate_of(
    device: &mut dyn Device,
    op: Op,
    sectors: u32,
    count: usize,
    depth: u64,
    random: bool,
) -> f64 {
    let (capacity, size) = (device.capacity_sectors(), u64::from(sectors));
    let in_sequence = |index| request(op, index % (capacity / size) * size, sectors);
    let mut requests: Box<dyn Iterator<Item = Request>> = match random {
        true => Box::new(random_requests(op, sectors, capacity, 1)),
        false => Box::new((0..).map(in_sequence)),
    };
    let times = closed_loop(device, &mut *requests, depth, count, 0);
    let measured = times[times.len() - 1] - times[count / 4 - 1];
    (count - count / 4) as f64 * f64::from(sectors) / measured as f64 * 1e9
}

fn device(profile: &str, state: Precondition) -> Box<dyn Device> {
    let mut device = shipped(profile).build(1);
    device.precondition(state);
    device
}

/// Requests of 4 KiB a second at random places.
fn random_rate(profile: &str, state: Precondition, op: Op, count: usize, depth: u64) -> f64 {
    rate_of(&mut device(profile, state), op, 8, count, depth, true) / 8.0
}

fn sequential_rate(profile: &str, op: Op) -> f64 {
    rate_of(&mut device(profile, FRESH), op, 256, 8_000, 32, false) * 512.0 / 1e6
}

/// 8 %: sheets round their figures, and "up to" and "over" leave as much open.
#[test]
fn profiles_give_the_lines_of_their_sheets() {
    for (profile, stated, state, depth) in SHEETS {
        let ours = [
            ("sequential read MB/s", sequential_rate(profile, Op::Read)),
            ("sequential write MB/s", sequential_rate(profile, Op::Write)),
            (
                "random reads/s",
                random_rate(profile, FRESH, Op::Read, 60_000, depth),
            ),
            (
                "random writes/s",
                random_rate(profile, state, Op::Write, 200_000, depth),
            ),
            (
                "random reads/s alone",
                random_rate(profile, FRESH, Op::Read, 2_000, 1),
            ),
            (
                "random writes/s alone",
                random_rate(profile, FRESH, Op::Write, 2_000, 1),
            ),
        ];
        for ((line, ours), stated) in ours.into_iter().zip(stated) {
            println!("{profile:<18} {line:<22} {stated:>8.0} {ours:>8.0}");
            assert!(
                stated == 0.0 || (ours / stated - 1.0).abs() < 0.08,
                "{profile}, {line}: {ours}, not {stated}"
            );
        }
    }
}

/// The cleaning that a worn device does costs its random writes their rate, not its sequential overwrites.
#[test]
fn one_set_of_parameters_gives_fast_sequential_and_slow_random_writes() {
    for profile in ["ssd-sata-dc", "ssd-nvme-dc"] {
        let mut ordered = device(profile, Precondition::Sequential);
        let sequential = rate_of(&mut ordered, Op::Write, 256, 8_000, 32, false) / 8.0;
        let random = random_rate(profile, WORN, Op::Write, 200_000, 32);
        assert!(
            sequential > 5.0 * random,
            "{profile}: {sequential} against {random}"
        );
    }
}

// Volumes, against what their providers document.

const MIB: f64 = 1048576.0;

/// Volumes on flash, with their I/Os and MiB per second.
const FLASH: [(&str, f64, f64); 6] = [
    ("volume-aws-gp3", 3_000.0, 125.0),
    ("volume-aws-gp3-16k", 16_000.0, 1_000.0),
    ("volume-aws-io2", 64_000.0, 4_000.0),
    ("volume-azure-premium-v2", 3_000.0, 125e6 / MIB),
    ("volume-gcp-pd-ssd", 36_720.0, 731.52),
    ("volume-gcp-hyperdisk-balanced", 3_000.0, 140.0),
];

/// Share of a value by which it misses another.
fn error(found: f64, expected: f64) -> f64 {
    (found / expected - 1.0).abs()
}

fn sized(name: &str, gib: f64) -> Profile {
    let text = format!(
        "like = \"{name}\"\ncapacity_gib = {gib}\n[source]\ncapacity_gib = \"a row of the provider's table\"\n"
    );
    Profile::parse_with(&text, "sized.toml", &library()).expect("a valid profile")
}

/// Baseline and burst of a volume with credits, in MiB per second.
fn baseline_and_burst(profile: &Profile) -> (f64, f64) {
    let DeviceParams::Volume(volume) = profile.params() else {
        panic!("not a volume");
    };
    let credits = volume.credits.as_ref().expect("a volume with credits");
    (
        credits.baseline_mb_per_s * 1e6 / MIB,
        volume.mb_per_s * 1e6 / MIB,
    )
}

#[test]
fn random_4k_at_depth_64_runs_at_the_limit_of_ios() {
    for (name, iops, _) in FLASH {
        let volume = shipped(name).build(1);
        let mut load = ClosedLoop::new(volume, Place::Random, 8, 64, 0);
        load.count(1);
        let found = load.count(2) as f64 / 2.0;
        assert!(error(found, iops) < 0.005, "{name}: {found}, not {iops}");
    }
}

#[test]
fn a_megabyte_at_a_time_runs_at_the_limit_of_throughput() {
    for (name, _, mib_per_s) in FLASH {
        let volume = shipped(name).build(1);
        let mut load = ClosedLoop::new(volume, Place::InSequence, MIB_SECTORS, 8, 0);
        load.count(1);
        let found = load.count(8) as f64 / 8.0;
        assert!(
            error(found, mib_per_s) < 0.005,
            "{name}: {found} MiB/s, not {mib_per_s}"
        );
    }
}

#[test]
fn idle_latency_has_the_median_and_the_99th_percentile_of_the_profile() {
    for (name, _, _) in FLASH {
        let profile = shipped(name);
        let DeviceParams::Volume(params) = profile.params() else {
            panic!("{name} is no volume");
        };
        for (op, expected) in [(Op::Read, params.read), (Op::Write, params.write)] {
            let mut driver = VirtualTimeDriver::new(profile.build(7));
            let moving = (8.0 * params.sector_ns) as u64;
            let mut times: Vec<u64> = (0..100_000)
                .map(|index| {
                    driver.run_until(driver.now() + SECOND / 1000);
                    driver.serve(request(op, index * 1000, 8)) - moving
                })
                .collect();
            times.sort_unstable();
            let (p50, p99) = (times[50_000] as f64, times[99_000] as f64);
            // With 100,000 draws the 99th percentile scatters by 0.4 %.
            assert!(
                error(p50, expected.p50_ns as f64) < 0.02,
                "{name} {op:?} p50 {p50}"
            );
            assert!(
                error(p99, expected.p99_ns as f64) < 0.02,
                "{name} {op:?} p99 {p99}"
            );
        }
    }
}

/// MiB that a volume with `saved` MiB of credits has served after `seconds` of as much as it can.
fn served(saved: f64, (baseline, burst): (f64, f64), seconds: u64) -> f64 {
    let seconds = seconds as f64;
    (burst * seconds).min(saved + baseline * seconds)
}

#[test]
fn credits_end_at_the_computed_second_and_come_back_while_idle() {
    for name in ["volume-aws-st1", "volume-aws-sc1"] {
        let profile = shipped(name);
        let rates = baseline_and_burst(&profile);
        let full = profile.capacity_bytes() as f64 / MIB;
        let spent_s = (full / (rates.1 - rates.0)) as u64;
        let mut load = ClosedLoop::new(profile.build(1), Place::InSequence, MIB_SECTORS, 16, 0);
        for seconds in [spent_s / 2, spent_s - 20, spent_s + 20, spent_s * 5 / 4] {
            load.run(seconds * SECOND, true);
            let expected = served(full, rates, seconds);
            let found = load.done as f64;
            // What a tenth of a second saves up, and the 16 requests outstanding.
            assert!(
                (found - expected).abs() < 50.0,
                "{name}: {found} MiB after {seconds} s, not {expected}"
            );
        }
        assert!(
            error(load.count(100) as f64 / 100.0, rates.0) < 0.005,
            "{name}"
        );
        load.run(load.now + 3600 * SECOND, false);
        let saved = rates.0 * 3600.0;
        let (volume, now) = (load.device, load.now);
        let mut load = ClosedLoop::new(volume, Place::InSequence, MIB_SECTORS, 16, now);
        let found = load.count(1200) as f64;
        let expected = served(saved, rates, 1200);
        assert!(
            (found - expected).abs() < 60.0,
            "{name}: {found} MiB after an idle hour, not {expected}"
        );
    }
}

#[test]
fn a_volume_in_use_for_long_has_no_credits_whenever_its_clock_begins() {
    for now in [0, 1_000_000 * SECOND] {
        let profile = shipped("volume-aws-st1");
        let mut volume = profile.build(1);
        volume.precondition(WORN);
        let mut load = ClosedLoop::new(volume, Place::InSequence, MIB_SECTORS, 16, now);
        let found = load.count(100) as f64 / 100.0;
        assert!(error(found, 40.0) < 0.005, "{found} MiB/s from {now} ns on");
    }
}

#[test]
fn small_random_requests_on_st1_cost_a_megabyte_each_and_those_in_sequence_do_not() {
    let volume = || shipped("volume-aws-st1").build(1);
    let mut random = ClosedLoop::new(volume(), Place::Random, 8, 64, 0);
    random.count(1);
    let found = random.count(10) as f64 / 10.0;
    assert!(error(found, 250.0) < 0.005, "{found} I/Os per second");
    let mut in_sequence = ClosedLoop::new(volume(), Place::InSequence, 256, 64, 0);
    in_sequence.count(1);
    let found = in_sequence.count(10) as f64 / 10.0 * 128.0 / 1024.0;
    assert!(error(found, 250.0) < 0.005, "{found} MiB/s");
}

/// Amazon EBS user guide, HDD volumes (2023): TiB, baseline and burst in MiB/s of st1 and of sc1.
#[test]
fn rates_follow_the_size_as_in_the_table_of_the_user_guide() {
    for (tib, st1, sc1) in [
        (0.125, (5.0, 31.25), (1.5, 10.0)),
        (0.5, (20.0, 125.0), (6.0, 40.0)),
        (2.0, (80.0, 500.0), (24.0, 160.0)),
        (3.125, (125.0, 500.0), (37.5, 250.0)),
        (12.5, (500.0, 500.0), (150.0, 250.0)),
        (16.0, (500.0, 500.0), (192.0, 250.0)),
    ] {
        for (name, expected) in [("volume-aws-st1", st1), ("volume-aws-sc1", sc1)] {
            let found = baseline_and_burst(&sized(name, tib * 1024.0));
            assert!(
                error(found.0, expected.0) < 1e-6,
                "{name}, {tib} TiB: {found:?}"
            );
            assert!(
                error(found.1, expected.1) < 1e-6,
                "{name}, {tib} TiB: {found:?}"
            );
        }
    }
}

/// The same guide: hours to read a whole volume once.
#[test]
fn a_scan_takes_as_long_as_the_user_guide_says() {
    const PIECE: u32 = 16 * MIB_SECTORS;
    for (tib, st1_h, sc1_h) in [
        (1, 1.17, 3.64),
        (3, 1.75, 3.64),
        (5, 2.91, 5.83),
        (16, 9.32, 18.64),
    ] {
        for (name, expected) in [("volume-aws-st1", st1_h), ("volume-aws-sc1", sc1_h)] {
            let volume = sized(name, f64::from(tib) * 1024.0).build(1);
            let pieces = volume.capacity_sectors() / u64::from(PIECE);
            let mut load = ClosedLoop::new(volume, Place::InSequence, PIECE, 4, 0);
            while load.done < pieces {
                let next = load.device.next_event().expect("requests are outstanding");
                load.run(next, true);
            }
            let hours = load.now as f64 / (3600 * SECOND) as f64;
            // The guide gives two digits, and cuts off rather than rounds.
            assert!(
                (hours - expected).abs() < 0.01,
                "{name}, {tib} TiB: {hours} h, not {expected}"
            );
        }
    }
}

#[test]
fn limits_follow_size_and_provisioning() {
    let iops = |gib| match sized("volume-gcp-pd-ssd", gib).params() {
        DeviceParams::Volume(volume) => volume.iops,
        _ => panic!("not a volume"),
    };
    assert_eq!(
        (iops(100.0), iops(1024.0), iops(10_000.0)),
        (9_000.0, 36_720.0, 100_000.0)
    );
    let text = "like = \"volume-aws-gp3-16k\"\ncapacity_gib = 10\n[source]\ncapacity_gib = \"for the test\"\n";
    let error = Profile::parse_with(text, "small.toml", &library()).expect_err("too many");
    assert!(
        error.message.contains("limits.iops.provisioned = 16000"),
        "{error}"
    );
    assert_eq!(error.fix, "give at most 5000");
}

// Load for volumes: a fixed number of requests outstanding, counted by time of completion.

const SECOND: Nanos = 1_000_000_000;
const MIB_SECTORS: u32 = 2048;

/// Where the next request of a closed loop lies.
#[derive(Clone, Copy)]
enum Place {
    Random,
    InSequence,
}

/// Keeps `depth` reads of `sectors` outstanding on a device, for as long as it is asked to.
struct ClosedLoop {
    device: Box<dyn Device>,
    now: Nanos,
    /// Requests that completed.
    done: u64,
    place: Place,
    sectors: u32,
    next: u64,
    completions: Vec<Completion>,
}

impl ClosedLoop {
    fn new(device: Box<dyn Device>, place: Place, sectors: u32, depth: u64, now: Nanos) -> Self {
        let mut this = Self {
            device,
            now,
            done: 0,
            place,
            sectors,
            next: 1,
            completions: Vec::new(),
        };
        (0..depth).for_each(|_| this.submit());
        this
    }

    fn submit(&mut self) {
        let places = self.device.capacity_sectors() / u64::from(self.sectors);
        let place = match self.place {
            // A step that has no factor in common with the number of places: none is next to the one before.
            Place::Random => self.next.wrapping_mul(0x9e37_79b9) % places,
            Place::InSequence => self.next % places,
        };
        let sector = place * u64::from(self.sectors);
        let read = request(Op::Read, sector, self.sectors);
        self.device.submit(self.now, self.next, read);
        self.next += 1;
    }

    /// Runs until `until`; no request is outstanding then if `refill` is false.
    fn run(&mut self, until: Nanos, refill: bool) {
        while let Some(event) = self.device.next_event().filter(|event| *event <= until) {
            self.now = event;
            self.completions.clear();
            self.device.advance(event, &mut self.completions);
            self.done += self.completions.len() as u64;
            if refill {
                (0..self.completions.len()).for_each(|_| self.submit());
            }
        }
        self.now = until;
    }

    /// Requests that complete in `seconds` from now on.
    fn count(&mut self, seconds: u64) -> u64 {
        let before = self.done;
        self.run(self.now + seconds * SECOND, true);
        self.done - before
    }
}
