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

mod bounds;
mod disk;
mod geometry;
mod import;
mod mechanics;
mod params;
mod queue;
mod readahead;
mod seek;
mod service;
mod writeback;
mod zones;

pub use disk::Disk;
pub use import::{ImportError, ImportFile, import};
pub use params::{CacheParams, HddParams, OverheadParams, QueueParams, QueuePolicy, ReadaheadEnd};
pub use seek::SeekCurve;
pub use zones::ZoneParams;
