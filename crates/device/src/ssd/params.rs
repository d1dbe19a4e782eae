//! Parameters of the solid-state disk.

use crate::Nanos;
use crate::profile::{Problem, Section, SectionResult};
use crate::ram::sector_ns;

/// Parameters of [`super::Ssd`].
#[derive(Clone, Debug, PartialEq)]
pub struct SsdParams {
    /// Addressable size, in bytes.
    pub capacity_bytes: u64,
    /// Units that work in parallel.
    pub channels: u32,
    /// Consecutive sectors on one channel; one read or program serves one stripe.
    pub stripe_sectors: u64,
    /// Time a channel is busy with the read of a stripe.
    pub read_ns: Nanos,
    /// Time a channel is busy with the program of a stripe.
    pub program_ns: Nanos,
    /// Command handling before a read.
    pub read_overhead_ns: Nanos,
    /// Command handling of a write.
    pub write_overhead_ns: Nanos,
    /// Time of a flush beside what it waits for.
    pub flush_ns: Nanos,
    /// Time the link takes for a sector; 0 for a link without limit.
    pub sector_ns: f64,
    /// Size of the write cache; 0 for none.
    pub cache_sectors: u64,
    /// Whether what is in the cache survives a loss of power, so that a flush need not empty it.
    pub power_loss_protection: bool,
}

impl SsdParams {
    pub(crate) fn parse(root: &mut Section<'_>) -> SectionResult<Self> {
        let params = Self {
            capacity_bytes: root.capacity("capacity_mb")?,
            channels: root.integer("channels", 1..=4096)? as u32,
            stripe_sectors: root.integer("stripe_kib", 1..=1024)? * 2,
            read_ns: root.micros("read_us", 0.0..=1e6)?,
            program_ns: root.micros("program_us", 0.0..=1e6)?,
            read_overhead_ns: root.micros("read_overhead_us", 0.0..=1e6)?,
            write_overhead_ns: root.micros("write_overhead_us", 0.0..=1e6)?,
            flush_ns: root.micros("flush_us", 0.0..=1e6)?,
            sector_ns: sector_ns(root.number("link_mb_per_s", 0.0..=1e6)?),
            cache_sectors: root.integer("write_cache_kib", 0..=1 << 30)? * 2,
            power_loss_protection: root.flag("power_loss_protection")?,
        };
        if params.power_loss_protection && params.cache_sectors == 0 {
            return Err(Problem::new(
                "power_loss_protection = true protects nothing: write_cache_kib = 0",
                "give write_cache_kib from 1 to 1073741824, or power_loss_protection = false",
            ));
        }
        Ok(params)
    }
}
