//! A small device with a translation layer, and overwriting it.

use std::collections::BTreeSet;

use tierwise_device::ssd::Ssd;
use tierwise_device::{Completion, Device, Op, Params, Precondition, Profile, Request, Written};

/// Sectors of a mapping unit.
pub const UNIT: u64 = 8;

/// After random overwrites of everything.
pub const WORN: Precondition = Precondition::Random { active_share: 1.0 };

const PROFILE: &str = r#"
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

/// The small device's profile, with texts replaced.
pub fn text(changes: &[(&str, &str)]) -> String {
    let body = changes.iter().fold(PROFILE.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "no {old} in the profile");
        text.replace(old, new)
    });
    sourced(&body)
}

/// The small device, with texts of its profile replaced.
pub fn ssd(changes: &[(&str, &str)]) -> Ssd {
    let profile = Profile::parse(&text(changes), "test.toml").expect("a valid profile");
    match profile.params() {
        Params::Ssd(params) => Ssd::new(params.clone()),
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

pub fn units(device: &dyn Device) -> u64 {
    device.capacity_sectors() / UNIT
}

pub fn write(unit: u64) -> Request {
    Request {
        op: Op::Write,
        sector: unit * UNIT,
        sectors: UNIT as u32,
        fua: false,
    }
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
pub fn amplification(before: Written, after: Written) -> f64 {
    (after.medium_sectors - before.medium_sectors) as f64
        / (after.host_sectors - before.host_sectors) as f64
}

/// Discards a range of units.
pub fn discard(device: &mut dyn Device, units: std::ops::Range<u64>) {
    device.submit(
        0,
        0,
        Request {
            op: Op::Discard,
            sector: units.start * UNIT,
            sectors: ((units.end - units.start) * UNIT) as u32,
            fua: false,
        },
    );
}
