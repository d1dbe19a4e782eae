//! A small disk made up for tests, with round numbers: a turn takes 10 ms, a sector 50 µs.

use tierwise_device::{Op, Profile, Request};

use crate::flash::sourced;

const TEXT: &str = "kind = \"hdd\"
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
#[allow(
    dead_code,
    reason = "not every test that has the disk counts cylinders"
)]
pub const OUTER_CYLINDER: u64 = 400;

/// The disk with other values for some keys.
pub fn profile(changes: &[(&str, &str)]) -> Profile {
    let line = |line: &str| {
        let key = line.split(" = ").next().unwrap_or_default();
        let change = changes.iter().find(|(changed, _)| *changed == key);
        change.map_or(line.to_owned(), |(key, value)| format!("{key} = {value}"))
    };
    let text: Vec<String> = TEXT.lines().map(line).collect();
    Profile::parse(&sourced(&text.join("\n")), "test").expect("a valid profile")
}

// A plain request.

pub fn request(op: Op, sector: u64, sectors: u32) -> Request {
    Request {
        op,
        sector,
        sectors,
        fua: false,
    }
}
