//! Devices made for tests, shipped or small, and loads for them.

#![allow(dead_code, reason = "benchmarks and tests of memory use a part of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use tierwise_device::ssd::Ssd;
use tierwise_device::{
    Completion, Device, DeviceParams, Nanos, Op, Precondition, Profile, ProfileError,
    ProfileLibrary, Request, VirtualTimeDriver, WrittenSectors,
};

// The profiles that ship with tierwise.

/// Where they are.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tierwise/data/devices")
}

/// The text of one.
pub fn shipped_text(name: &str) -> String {
    fs::read_to_string(folder().join(format!("{name}.toml"))).expect("a shipped profile")
}

/// One by its name.
pub fn shipped(name: &str) -> Profile {
    let file = format!("{name}.toml");
    Profile::parse_with(&shipped_text(name), &file, &library()).expect("a valid profile")
}

/// All that ship, for those that refer to others.
pub fn library() -> ProfileLibrary {
    let files = fs::read_dir(folder()).expect("the shipped profiles");
    let name = |file: PathBuf| {
        file.file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned()
    };
    let names = files.map(|entry| name(entry.expect("a file").path()));
    ProfileLibrary::new(
        names
            .map(|name| (name.clone(), shipped_text(&name)))
            .collect(),
    )
}

/// A profile with the same source for each of its numbers and tables.
pub fn sourced(body: &str) -> String {
    let (mut keys, mut in_table) = (BTreeSet::new(), false);
    for line in body.lines() {
        if let Some(name) = line.strip_prefix('[') {
            in_table = true;
            keys.extend(name.trim_start_matches('[').split(['.', ']']).next());
        } else if let Some((key, value)) = line.split_once(" = ") {
            let is_number = value.starts_with(|sign: char| sign == '[' || sign.is_ascii_digit());
            keys.extend((!in_table && is_number).then_some(key));
        }
    }
    let sources = keys
        .iter()
        .map(|key| format!("{key} = \"made for the test\"\n"));
    format!("{body}\n[source]\n{}", sources.collect::<String>())
}

// A small disk with round numbers: a turn takes 10 ms, a sector 50 µs.

const DISK: &str = "kind = \"hdd\"
summary = \"made up for tests\"
write_cache = false
[mechanics]
rpm = 6000
surfaces = 2
head_switch_us = 1000
write_settle_us = 0
read_settle_us = 0
serpentine = false
[seek]
curve = \"table\"
table_us = [[1, 1000], [100000, 10000]]
[[zones]]
first_cylinder = 0
cylinders = 50000
sectors_per_track = 200
track_skew_sectors = 30
cylinder_skew_sectors = 30
[[zones]]
first_cylinder = 50000
cylinders = 50000
sectors_per_track = 100
track_skew_sectors = 15
cylinder_skew_sectors = 15
[cache]
segments = 4
segment_sectors = 400
readahead_sectors = 200
readahead_to = \"segment\"
readahead_if_sequential = false
read_on_arrival = false
write_sectors = 100
write_segments = 4
[bus]
sector_us = 10
[queue]
depth = 8
policy = \"fcfs\"
age_limit_us = 1e6
flush = \"queued\"
[overhead]
read_hit_after_read_us = 100
read_hit_after_write_us = 100
read_miss_after_read_us = 0
read_miss_after_write_us = 0
write_hit_after_read_us = 100
write_hit_after_write_us = 100
write_miss_after_read_us = 100
write_miss_after_write_us = 100
read_completion_us = 0
write_completion_us = 0
flush_us = 200
";

/// Sectors of an outer cylinder: two tracks of 200.
pub const OUTER_CYLINDER: u64 = 400;

/// The disk with other values for some keys.
pub fn disk(changes: &[(&str, &str)]) -> Profile {
    let line = |line: &str| {
        let key = line.split(" = ").next().unwrap_or_default();
        let change = changes.iter().find(|(changed, _)| *changed == key);
        change.map_or(line.to_owned(), |(key, value)| format!("{key} = {value}"))
    };
    let text: Vec<String> = DISK.lines().map(line).collect();
    Profile::parse(&sourced(&text.join("\n")), "test").expect("a valid profile")
}

// A small device with a translation layer, and overwriting it.

/// Sectors of a mapping unit.
pub const UNIT: u64 = 8;

/// After random overwrites of everything.
pub const WORN: Precondition = Precondition::Random { active_share: 1.0 };

const FLASH: &str = r#"
kind = "ssd"
summary = "test"
capacity_mb = 1000
channels = 2
dies_per_channel = 4
planes = 1
stripe_kib = 16
read_us = 50
program_us = 400
read_overhead_us = 5
write_overhead_us = 10
flush_us = 20
link_mb_per_s = 0
write_cache_kib = 1024
power_loss_protection = true
[cleaning]
pages_per_block = 16
erase_us = 2000
spare_share = 0.28
"#;

/// The small device's profile, with texts replaced.
pub fn flash_text(changes: &[(&str, &str)]) -> String {
    let body = changes.iter().fold(FLASH.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "no {old} in the profile");
        text.replace(old, new)
    });
    sourced(&body)
}

/// The small device, with texts of its profile replaced.
pub fn ssd(changes: &[(&str, &str)]) -> Ssd {
    let profile = Profile::parse(&flash_text(changes), "test.toml").expect("a valid profile");
    match profile.params() {
        DeviceParams::Ssd(params) => Ssd::new(params.clone()),
        _ => unreachable!("the profile is of an SSD"),
    }
}

/// The small device with another share of spare space.
pub fn with_spare(spare_share: f64) -> Ssd {
    ssd(&[(
        "spare_share = 0.28",
        &format!("spare_share = {spare_share}"),
    )])
}

/// The small device in the steady state of random overwrites.
pub fn worn(spare_share: f64) -> Ssd {
    let mut device = with_spare(spare_share);
    device.precondition(WORN);
    device
}

pub fn units(device: &dyn Device) -> u64 {
    device.capacity_sectors() / UNIT
}

pub fn write(unit: u64) -> Request {
    Request::new(Op::Write, unit * UNIT, UNIT as u32)
}

/// Writes units that `next` names one after the other, as fast as the device takes them, from `now` on;
/// returns the time of the end.
pub fn overwrite(
    device: &mut dyn Device,
    mut now: u64,
    count: u64,
    mut next: impl FnMut() -> u64,
) -> u64 {
    let mut completions: Vec<Completion> = Vec::new();
    for id in 0..count {
        device.submit(now, id, write(next()));
        now = device.next_event().expect("a write is outstanding");
        completions.clear();
        device.advance(now, &mut completions);
    }
    now
}

/// Write amplification of what was written between two counts.
pub fn amplification(before: WrittenSectors, after: WrittenSectors) -> f64 {
    (after.medium_sectors - before.medium_sectors) as f64
        / (after.host_sectors - before.host_sectors) as f64
}

/// Discards a range of units.
pub fn discard(device: &mut dyn Device, units: std::ops::Range<u64>) {
    device.submit(
        0,
        0,
        Request::new(
            Op::Discard,
            units.start * UNIT,
            ((units.end - units.start) * UNIT) as u32,
        ),
    );
}

// Arrays of shipped members or small ones.

/// A disk of 240 MB whose tracks all have 100 sectors.
const SMALL_DISK: &str = r#"
like = "hdd-10k-18g-fc"
summary = "small"
zones = [{ first_cylinder = 0, cylinders = 400, sectors_per_track = 100, track_skew_sectors = 24, cylinder_skew_sectors = 30 }]
[source]
zones = "made for the test"
"#;

/// Memory of 32 MB; each command takes 100 us, at the same time as others.
const SMALL_RAM: &str = r#"
kind = "ram"
summary = "small"
capacity_mb = 32
read_latency_us = 100
write_latency_us = 100
flush_latency_us = 100
link_mb_per_s = 0
"#;

/// The text of an array. `more` holds further lines of the profile; every number is given a source.
pub fn array_text(member: &str, level: &str, members: u32, more: &str) -> String {
    let coupled = if more.contains("coupled") {
        ""
    } else {
        "coupled = false\n"
    };
    let body =
        format!("member = \"{member}\"\nlevel = \"{level}\"\nmembers = {members}\n{coupled}{more}");
    sourced(&format!("kind = \"array\"\nsummary = \"test\"\n{body}"))
}

pub fn parse_array(text: &str) -> Result<Profile, ProfileError> {
    let shipped = ["hdd-10k-18g-fc", "hdd-7k2", "hdd-7k2-sata-2009"];
    let mut texts = BTreeMap::from(shipped.map(|name| (name.to_owned(), shipped_text(name))));
    let in_order = "like = \"hdd-10k-18g-fc\"\n[queue]\npolicy = \"fcfs\"\n";
    texts.insert("fcfs-disk".into(), in_order.into());
    texts.insert("small-disk".into(), SMALL_DISK.into());
    texts.insert("small-ram".into(), sourced(SMALL_RAM));
    texts.insert("pair".into(), array_text("small-ram", "raid1", 2, ""));
    texts.insert("circle".into(), array_text("circle", "raid1", 2, ""));
    Profile::parse_with(text, "test.toml", &ProfileLibrary::new(texts))
}

/// A valid array.
pub fn array(member: &str, level: &str, members: u32, more: &str) -> Profile {
    let text = array_text(member, level, members, more);
    parse_array(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A stripe unit and a controller with room for 32 MiB of writes.
pub fn controller(protected: bool) -> String {
    format!(
        "stripe_kib = 64\n[controller]\noverhead_us = 50\nbus_mb_per_s = 400\ncache_mib = 64\n\
         write_share = 0.5\nprotected = {protected}\n"
    )
}

// Random and sequential requests, and keeping a number of them outstanding.

/// Marsaglia's xorshift.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * u128::from(end)) >> 64) as u64
    }
}

/// A request without forced unit access.
pub fn request(op: Op, sector: u64, sectors: u32) -> Request {
    Request::new(op, sector, sectors)
}

/// Requests of one size within the first `span` sectors, at random places that a seed decides.
pub fn random_requests(
    op: Op,
    sectors: u32,
    span: u64,
    seed: u64,
) -> impl Iterator<Item = Request> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let size = u64::from(sectors);
    std::iter::repeat_with(move || request(op, random.below(span / size) * size, sectors))
}

/// Serves `count` requests with `depth` outstanding; the time each completed, in order.
pub fn closed_loop(
    device: &mut dyn Device,
    requests: &mut dyn Iterator<Item = Request>,
    depth: u64,
    count: usize,
    begin: Nanos,
) -> Vec<Nanos> {
    let mut submit = |device: &mut dyn Device, now, id| {
        device.submit(now, id, requests.next().expect("a further request"));
    };
    (0..depth).for_each(|id| submit(device, begin, id));
    let mut times = Vec::with_capacity(count);
    let mut done: Vec<Completion> = Vec::new();
    while times.len() < count {
        let now = device
            .next_event()
            .expect("requests are outstanding")
            .max(begin);
        done.clear();
        device.advance(now, &mut done);
        for completion in &done {
            times.push(completion.at);
            submit(device, now, completion.id);
        }
    }
    times
}

/// Requests a second of a device under random requests.
pub fn rate(profile: &Profile, op: Op, sectors: u32, depth: u64, count: usize) -> f64 {
    let mut device = profile.build(7);
    let mut requests = random_requests(op, sectors, device.capacity_sectors(), 3);
    let times = closed_loop(&mut device, &mut requests, depth, count, 0);
    count as f64 * 1e9 / *times.last().expect("a time") as f64
}

/// Mean time of requests served one at a time, in nanoseconds.
pub fn mean_ns(profile: &Profile, requests: impl Iterator<Item = Request>, count: usize) -> f64 {
    let mut driver = VirtualTimeDriver::new(profile.build(7));
    let total: Nanos = requests
        .take(count)
        .map(|request| driver.serve(request))
        .sum();
    total as f64 / count as f64
}

// Throughput and latency over written volume; shows the write cliff at which cleaning begins.

/// Times of a part of the writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Bytes written from the beginning to the end of this window.
    pub written_bytes: u64,
    /// 10^6 bytes a second.
    pub mb_per_s: f64,
    /// Median latency of a write.
    pub p50_ns: Nanos,
    /// 99th percentile of the latency.
    pub p99_ns: Nanos,
    /// Bytes to the flash for each byte of the host.
    pub write_amplification: f64,
}

/// Writes 4 KiB at random places of a device, `depth` (1 or more) at a time, in `windows` windows of
/// `window_bytes`; returns the times of each window. The same seed gives the same places.
pub fn overwrite_history(
    device: &mut dyn Device,
    depth: u64,
    window_bytes: u64,
    windows: u64,
    seed: u64,
) -> Vec<Window> {
    let mut writer = Writer::new(device, depth, seed);
    let count = (window_bytes / 512 / UNIT).max(1);
    (1..=windows).map(|_| writer.window(count)).collect()
}

/// A host that keeps writes outstanding.
struct Writer<'a> {
    device: &'a mut dyn Device,
    now: Nanos,
    random: Random,
    written: u64,
    /// When each outstanding write was submitted, by its id.
    submitted: Vec<Nanos>,
    completions: Vec<Completion>,
}

impl<'a> Writer<'a> {
    fn new(device: &'a mut dyn Device, depth: u64, seed: u64) -> Self {
        let mut writer = Self {
            device,
            now: 0,
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            written: 0,
            submitted: vec![0; depth.max(1) as usize],
            completions: Vec::with_capacity(depth as usize),
        };
        (0..depth.max(1)).for_each(|id| writer.submit(id));
        writer
    }

    fn submit(&mut self, id: u64) {
        let places = self.device.capacity_sectors() / UNIT;
        let place = self.random.below(places);
        let request = write(place);
        self.submitted[id as usize] = self.now;
        self.device.submit(self.now, id, request);
    }

    fn window(&mut self, count: u64) -> Window {
        let (start, before) = (self.now, self.device.written());
        let mut latencies = Vec::with_capacity(count as usize);
        while (latencies.len() as u64) < count
            && let Some(event) = self.device.next_event()
        {
            self.now = event;
            self.completions.clear();
            self.device.advance(event, &mut self.completions);
            for index in 0..self.completions.len() {
                let done = self.completions[index];
                latencies.push(done.at - self.submitted[done.id as usize]);
                self.submit(done.id);
            }
        }
        let bytes = latencies.len() as u64 * UNIT * 512;
        self.written += bytes;
        latencies.sort_unstable();
        Window {
            written_bytes: self.written,
            mb_per_s: bytes as f64 * 1e3 / (self.now - start).max(1) as f64,
            p50_ns: latencies[latencies.len() / 2],
            p99_ns: latencies[latencies.len() * 99 / 100],
            write_amplification: amplification(before, self.device.written()),
        }
    }
}
