//! A hard disk.
//!
//! Models: zones, track and cylinder skew, spare and slipped sectors; seek by table or formula, head switch,
//! settling before writes; rotation from absolute time; transfers over tracks, cylinders and zones; segmented
//! read cache with read-ahead; write cache with immediate reporting, joining and nearest-first writing back;
//! flush; command overheads; host bus; command queue.
//! The parts and their names follow Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer
//! 27(3), 1994; formulas with other sources name them.
//! Does not model: thermal recalibration, bad-sector reallocation beyond slips, sending a read out of order, vibration,
//! spin-up, errors and retries, shingled recording, contention on the bus between media transfers.

mod drive_files;
mod geometry;
mod hard_disk;
mod mechanics;
mod params;
mod queue;
mod readahead;
mod seek;
mod service;

pub use drive_files::{DriveFile, DriveFileError, profile_from_drive_files};
pub use hard_disk::HardDisk;
pub use params::ZoneParams;
pub use params::{
    DiskCacheParams, HddParams, OverheadParams, QueueParams, QueuePolicy, ReadaheadEnd,
};
pub use seek::SeekCurve;

/// Every bound of a disk's parameters.
mod bounds {
    use std::ops::RangeInclusive;

    use crate::Nanos;

    pub(super) const RPM: RangeInclusive<f64> = 1000.0..=30_000.0;
    pub(super) const SURFACES: RangeInclusive<u32> = 1..=64;
    pub(super) const SETTLE_NS: RangeInclusive<Nanos> = 0..=50_000_000;
    pub(super) const WRITE_SETTLE_US: RangeInclusive<f64> = -5_000.0..=50_000.0;
    pub(super) const OVERHEAD_NS: RangeInclusive<Nanos> = 0..=100_000_000;
    pub(super) const BUS_SECTOR_US: RangeInclusive<f64> = 0.0..=10_000.0;
    pub(super) const SEGMENTS: RangeInclusive<u32> = 0..=256;
    pub(super) const SEGMENT_SECTORS: RangeInclusive<u32> = 1..=1 << 24;
    pub(super) const CACHE_SECTORS: RangeInclusive<u32> = 0..=1 << 24;
    pub(super) const WRITE_SEGMENTS: RangeInclusive<u32> = 1..=4096;
    pub(super) const QUEUE_DEPTH: RangeInclusive<u32> = 1..=1024;
    /// From 1 µs to 1,000 s.
    pub(super) const AGE_LIMIT_NS: RangeInclusive<Nanos> = 1_000..=1_000_000_000_000;
    pub(super) const SEEK_US: RangeInclusive<f64> = 0.0..=1e6;
    pub(super) const SEEK_CYLINDERS: RangeInclusive<f64> = 1.0..=1e7;
    pub(super) const SECTORS_PER_TRACK: RangeInclusive<u32> = 8..=100_000;
    pub(super) const FIRST_CYLINDER: RangeInclusive<u32> = 0..=10_000_000;
    pub(super) const CYLINDERS: RangeInclusive<u32> = 1..=10_000_000;
    /// Sectors or tracks of a zone that hold no data.
    pub(super) const UNUSED: RangeInclusive<u64> = 0..=1 << 40;
}
