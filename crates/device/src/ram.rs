//! Memory behind a link: a fixed latency and a shared bandwidth.
//!
//! Stands for a RAM disk and for DRAM storage behind a network. With every number 0 it measures the path to
//! the device.
//!
//! Models: latency by operation, one link shared by all requests in order of arrival.
//! Does not model: memory channels, refresh, a processor's caches, a controller's queue limits.

use crate::params_error::{SectionResult, TIME_NS};
use crate::profile_section::ProfileSection;
use crate::virtual_time_driver::{EventQueue, LatestTime};
use crate::{Completion, Device, Nanos, Op, Request, RequestId, SECTOR_BYTES, WrittenSectors};

/// Parameters of [`Ram`].
#[derive(Clone, Debug, PartialEq)]
pub struct RamParams {
    /// Addressable size, in bytes.
    pub capacity_bytes: u64,
    /// From the command to the first byte of a read.
    pub read_latency_ns: Nanos,
    /// From the last byte of a write to its acknowledgement.
    pub write_latency_ns: Nanos,
    /// Time of a flush.
    pub flush_latency_ns: Nanos,
    /// Time the link takes for a sector; 0 for a link without limit.
    pub sector_ns: f64,
}

impl RamParams {
    pub(crate) fn parse(root: &mut ProfileSection<'_>) -> SectionResult<Self> {
        Ok(Self {
            capacity_bytes: root.capacity("capacity_mb")?,
            read_latency_ns: root.micros("read_latency_us", TIME_NS)?,
            write_latency_ns: root.micros("write_latency_us", TIME_NS)?,
            flush_latency_ns: root.micros("flush_latency_us", TIME_NS)?,
            sector_ns: root.link_ns("link_mb_per_s")?,
        })
    }
}

/// The model.
#[derive(Debug)]
pub struct Ram {
    params: RamParams,
    link_free: Nanos,
    time: LatestTime,
    due: EventQueue,
    written: WrittenSectors,
}

impl Ram {
    /// A device with an idle link.
    pub(crate) fn new(params: RamParams) -> Self {
        Self {
            params,
            link_free: 0,
            time: LatestTime::default(),
            due: EventQueue::new(),
            written: WrittenSectors::default(),
        }
    }

    fn transfer(&mut self, from: Nanos, sectors: u32) -> Nanos {
        let start = from.max(self.link_free);
        self.link_free = start + (f64::from(sectors) * self.params.sector_ns) as Nanos;
        self.link_free
    }
}

impl Device for Ram {
    fn submit(&mut self, now: Nanos, id: RequestId, request: Request) {
        let now = self.time.to(now);
        let request = request.fitted(self.capacity_sectors());
        self.written.host_sectors += request.written_sectors();
        self.written.medium_sectors += request.written_sectors();
        let at = match request.op {
            Op::Read => self.transfer(now, request.sectors) + self.params.read_latency_ns,
            Op::Write => self.transfer(now, request.sectors) + self.params.write_latency_ns,
            Op::Flush => now + self.params.flush_latency_ns,
            Op::Discard => now + self.params.write_latency_ns,
        };
        self.due.push(at, id);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.due.next()
    }

    fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        self.due.drain(self.time.to(now), completions);
    }

    fn capacity_sectors(&self) -> u64 {
        self.params.capacity_bytes / SECTOR_BYTES
    }

    fn written(&self) -> WrittenSectors {
        self.written
    }
}
