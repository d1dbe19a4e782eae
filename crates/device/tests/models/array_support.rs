//! Arrays made for tests, of shipped members or small ones.

use std::collections::BTreeMap;

use tierwise_device::{
    Completion, Device, Driver, Library, Nanos, Op, Profile, ProfileError, Request,
};

pub use crate::disk::request;
use crate::flash::sourced;

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
pub fn text(member: &str, level: &str, members: u32, more: &str) -> String {
    let coupled = if more.contains("coupled") {
        ""
    } else {
        "coupled = false\n"
    };
    let body =
        format!("member = \"{member}\"\nlevel = \"{level}\"\nmembers = {members}\n{coupled}{more}");
    sourced(&format!("kind = \"array\"\nsummary = \"test\"\n{body}"))
}

pub fn parse(text: &str) -> Result<Profile, ProfileError> {
    let shipped = ["hdd-10k-18g-fc", "hdd-7k2", "hdd-7k2-sata-2009"];
    let mut texts = BTreeMap::from(shipped.map(|name| (name.to_owned(), shipped_text(name))));
    let in_order = "like = \"hdd-10k-18g-fc\"\n[queue]\npolicy = \"fcfs\"\n";
    texts.insert("fcfs-disk".into(), in_order.into());
    texts.insert("small-disk".into(), SMALL_DISK.into());
    texts.insert("small-ram".into(), sourced(SMALL_RAM));
    texts.insert("pair".into(), self::text("small-ram", "raid1", 2, ""));
    texts.insert("circle".into(), self::text("circle", "raid1", 2, ""));
    Profile::parse_with(text, "test.toml", &Library::new(texts))
}

fn shipped_text(name: &str) -> String {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../python/tierwise/data/devices"
    );
    std::fs::read_to_string(format!("{folder}/{name}.toml")).expect("a shipped profile")
}

/// A valid array.
pub fn array(member: &str, level: &str, members: u32, more: &str) -> Profile {
    let text = text(member, level, members, more);
    parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

pub const FLUSH: Request = Request {
    op: Op::Flush,
    sector: 0,
    sectors: 0,
    fua: false,
};

/// A stripe unit and a controller with room for 32 MiB of writes.
pub fn controller(protected: bool) -> String {
    format!(
        "stripe_kib = 64\n[controller]\noverhead_us = 50\nbus_mb_per_s = 400\ncache_mib = 64\n\
         write_share = 0.5\nprotected = {protected}\n"
    )
}

/// Random requests of one size, the same for the same seed.
pub struct Random {
    state: u64,
    pub op: Op,
    pub sectors: u32,
    pub span: u64,
}

impl Random {
    pub fn new(op: Op, sectors: u32, span: u64, seed: u64) -> Self {
        let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self {
            state,
            op,
            sectors,
            span,
        }
    }
}

impl Iterator for Random {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let place = (self.state >> 11) % (self.span / u64::from(self.sectors));
        let sector = place * u64::from(self.sectors);
        Some(request(self.op, sector, self.sectors))
    }
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
    let mut requests = Random::new(op, sectors, device.capacity_sectors(), 3);
    let times = closed_loop(&mut device, &mut requests, depth, count, 0);
    count as f64 * 1e9 / *times.last().expect("a time") as f64
}

/// Mean time of requests served one at a time, in nanoseconds.
pub fn mean_ns(profile: &Profile, requests: impl Iterator<Item = Request>, count: usize) -> f64 {
    let mut driver = Driver::new(profile.build(7));
    let total: Nanos = requests
        .take(count)
        .map(|request| driver.serve(request))
        .sum();
    total as f64 / count as f64
}
