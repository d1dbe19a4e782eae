//! Parameters of the cloud volume and how a profile gives them.

use std::ops::RangeInclusive;

use super::latency::LatencyParams;
use super::limits::{self, RATE};
use crate::bounds::{CAPACITY_BYTES, LINK_MB_PER_S, SECTOR_NS, TIME_NS, WAIT_NS, sector_ns};
use crate::problem::{Problem, SectionResult, require};
use crate::section::Section;
use crate::{Nanos, SECTOR_BYTES};

const GIB_BYTES: u64 = 1 << 30;

/// Times whose share of the limits an idle volume may save up, in nanoseconds: from 1 µs to 10 s.
const WINDOW_NS: RangeInclusive<Nanos> = 1_000..=10_000_000_000;

const QUEUE_DEPTH: RangeInclusive<u32> = 1..=65_536;
const UNIT_SECTORS: RangeInclusive<u64> = 8..=1 << 21;

/// Parameters of [`super::Volume`].
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeParams {
    /// Addressable size, in bytes.
    pub capacity_bytes: u64,
    /// Of a read on an idle volume, without the transfer.
    pub read: LatencyParams,
    /// Of a write on an idle volume, without the transfer.
    pub write: LatencyParams,
    /// Time of a flush and of a discard.
    pub flush_ns: Nanos,
    /// Time the transfer of a sector adds to a request; 0 for none.
    pub sector_ns: f64,
    /// I/Os per second.
    pub iops: f64,
    /// 10⁶ bytes per second; while there are credits, if the volume has such.
    pub mb_per_s: f64,
    /// Time whose share of both limits an idle volume saves up.
    pub window_ns: Nanos,
    /// What counts as one I/O.
    pub count: CountParams,
    /// Requests that are worked on at the same time; `None` for no limit.
    pub queue_depth: Option<u32>,
    /// Throughput credits.
    pub credits: Option<CreditParams>,
}

/// What counts as one I/O.
#[derive(Clone, Debug, PartialEq)]
pub struct CountParams {
    /// Largest I/O: larger requests count as several; 0 if requests of any size count as one.
    pub unit_sectors: u64,
    /// Whether throughput is counted in whole units, however small the request.
    pub whole_units: bool,
    /// How long after a request completes one that continues it is merged with it; `None` for no merging.
    pub merge_window_ns: Option<Nanos>,
}

/// Credits for throughput above a baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct CreditParams {
    /// Rate at which credits come in, in 10⁶ bytes per second.
    pub baseline_mb_per_s: f64,
    /// Most that can be saved up, in bytes.
    pub most_bytes: f64,
}

impl VolumeParams {
    pub(crate) fn parse(root: &mut Section<'_>) -> SectionResult<Self> {
        let size_gib = root.integer("capacity_gib", 1..=CAPACITY_BYTES.end() / GIB_BYTES)?;
        let mut latency = root.section("latency")?;
        let read = LatencyParams::parse(&mut latency, "read_p50_us", "read_p99_us")?;
        let write = LatencyParams::parse(&mut latency, "write_p50_us", "write_p99_us")?;
        let flush_ns = latency.micros("flush_us", TIME_NS)?;
        let sector_ns = sector_ns(latency.number("transfer_mb_per_s", LINK_MB_PER_S)?);
        latency.finish()?;
        let mut section = root.section("limits")?;
        let iops = limits::parse(section.section("iops")?, size_gib as f64, 0.0)?;
        let mb_per_s = limits::parse(section.section("mb_per_s")?, size_gib as f64, iops)?;
        let params = Self {
            capacity_bytes: size_gib * GIB_BYTES,
            read,
            write,
            flush_ns,
            sector_ns,
            iops,
            mb_per_s,
            window_ns: section.micros("window_us", WINDOW_NS)?,
            count: CountParams::parse(&mut section)?,
            queue_depth: section.optional("queue_depth", |limits| {
                limits.integer("queue_depth", QUEUE_DEPTH)
            })?,
            credits: credits(root, size_gib)?,
        };
        section.finish()?;
        params.check()?;
        Ok(params)
    }

    pub(super) fn check(&self) -> SectionResult<()> {
        require("capacity_bytes", self.capacity_bytes, CAPACITY_BYTES)?;
        self.read.check("read")?;
        self.write.check("write")?;
        require("flush_ns", self.flush_ns, TIME_NS)?;
        require("sector_ns", self.sector_ns, SECTOR_NS)?;
        require("iops", self.iops, RATE)?;
        require("mb_per_s", self.mb_per_s, RATE)?;
        require("window_ns", self.window_ns, WINDOW_NS)?;
        self.count.check()?;
        if let Some(depth) = self.queue_depth {
            require("queue_depth", depth, QUEUE_DEPTH)?;
        }
        let Some(credits) = &self.credits else {
            return Ok(());
        };
        require("credits.baseline_mb_per_s", credits.baseline_mb_per_s, RATE)?;
        require("credits.most_bytes", credits.most_bytes, 0.0..=1e18)
    }

    /// Sectors per second of the throughput limit.
    pub(super) fn sectors_per_s(&self) -> f64 {
        sectors(self.mb_per_s * 1e6)
    }
}

impl CountParams {
    fn parse(section: &mut Section<'_>) -> SectionResult<Self> {
        Ok(Self {
            unit_sectors: section.kib_or("io_unit_kib", 0, UNIT_SECTORS)?,
            whole_units: section.flag_or("whole_units", false)?,
            merge_window_ns: section.optional("merge_window_us", |limits| {
                limits.micros("merge_window_us", WAIT_NS)
            })?,
        })
    }

    fn check(&self) -> SectionResult<()> {
        if self.unit_sectors > 0 {
            require("count.unit_sectors", self.unit_sectors, UNIT_SECTORS)?;
        }
        if let Some(window) = self.merge_window_ns {
            require("count.merge_window_ns", window, WAIT_NS)?;
        }
        let counts_units = self.whole_units || self.merge_window_ns.is_some();
        if counts_units && self.unit_sectors == 0 {
            return Err(Problem::new(
                "limits.whole_units and limits.merge_window_us mean nothing without limits.io_unit_kib",
                "give limits.io_unit_kib, or remove them",
            ));
        }
        Ok(())
    }
}

impl CreditParams {
    /// Sectors per second of the baseline.
    pub(super) fn sectors_per_s(&self) -> f64 {
        sectors(self.baseline_mb_per_s * 1e6)
    }

    /// Sectors that can be saved up.
    pub(super) fn most_sectors(&self) -> f64 {
        sectors(self.most_bytes)
    }
}

fn sectors(bytes: f64) -> f64 {
    bytes / SECTOR_BYTES as f64
}

fn credits(root: &mut Section<'_>, size_gib: u64) -> SectionResult<Option<CreditParams>> {
    if !root.has("credits") {
        return Ok(None);
    }
    let mut section = root.section("credits")?;
    let most_gib_per_gib = section.number("most_gib_per_gib", 0.0..=1e3)?;
    let baseline = limits::parse(section.section("mb_per_s")?, size_gib as f64, 0.0)?;
    section.finish()?;
    Ok(Some(CreditParams {
        baseline_mb_per_s: baseline,
        most_bytes: most_gib_per_gib * (size_gib * GIB_BYTES) as f64,
    }))
}
