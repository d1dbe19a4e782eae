//! The disk as a [`Device`]: takes commands, keeps the mechanism busy, reports completions.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::mechanics::{ArmPosition, DiskMechanics};
use super::params::{HddParams, OverheadParams};
use super::queue::DiskWriteCache;
use super::queue::{Queue, WaitingCommand};
use super::readahead::{CacheLookup, ReadCache};
use crate::hdd::queue::FlushQueue;
use crate::hdd::queue::MechanismJob;
use crate::virtual_time_driver::{EventQueue, LatestTime, RESERVED};
use crate::{Completion, Device, Nanos, Op, Request, RequestId, WrittenSectors, random};

/// The model of a hard disk.
#[derive(Debug)]
pub struct HardDisk {
    pub(super) mechanics: DiskMechanics,
    pub(super) overhead: OverheadParams,
    pub(super) bus_sector_ns: f64,
    pub(super) write_cache_on: bool,
    pub(super) arm: ArmPosition,
    pub(super) job: Option<MechanismJob>,
    pub(super) queue: Queue,
    pub(super) reads: ReadCache,
    pub(super) writes: DiskWriteCache,
    /// Writes that wait for space in the write cache.
    pub(super) blocked: VecDeque<(RequestId, Request)>,
    pub(super) flushes: FlushQueue,
    /// End of the previous command, if that was a write.
    pub(super) last_write_end: Option<u64>,
    /// End of the previous command, if that was a read.
    pub(super) last_read_end: Option<u64>,
    /// End of the read that the head is on, or reads ahead behind.
    pub(super) read_to: Option<u64>,
    pub(super) wrote_back: bool,
    pub(super) bus_free: Nanos,
    pub(super) due: EventQueue,
    time: LatestTime,
    pub(super) written: WrittenSectors,
}

impl HardDisk {
    /// A disk at rest with empty caches; the seed sets the platter's angle at time 0. Disks of one profile share
    /// the table `seek_ns`, which [`HddParams::seek_ns`] computes.
    pub(crate) fn new(params: &HddParams, seed: u64, seek_ns: Arc<[u32]>) -> Self {
        Self {
            mechanics: DiskMechanics::new(params, random::mix_bits(seed), seek_ns),
            overhead: params.overhead.clone(),
            bus_sector_ns: params.bus_sector_ns,
            write_cache_on: params.write_cache,
            arm: ArmPosition::default(),
            job: None,
            queue: Queue::new(params.queue.clone()),
            reads: ReadCache::new(&params.cache),
            writes: DiskWriteCache::new(params),
            blocked: VecDeque::with_capacity(RESERVED),
            flushes: FlushQueue::new(params.queue.flush_drains),
            last_write_end: None,
            last_read_end: None,
            read_to: None,
            wrote_back: false,
            bus_free: 0,
            due: EventQueue::new(),
            time: LatestTime::default(),
            written: WrittenSectors::default(),
        }
    }

    pub(super) fn take(&mut self, now: Nanos, id: RequestId, request: Request) {
        match request.op {
            Op::Read | Op::Write if request.sectors == 0 => {
                self.due.push(now + self.overhead.flush_ns, id);
            }
            Op::Read => self.read(now, id, request),
            Op::Write => self.write(now, id, request),
            Op::Flush => self.flush(now, id),
            Op::Discard => self.due.push(now + self.overhead.flush_ns, id),
        }
    }

    fn read(&mut self, now: Nanos, id: RequestId, request: Request) {
        let end = request.sector + u64::from(request.sectors);
        let after_write = self.last_write_end.take().is_some();
        let sequential = self.last_read_end.replace(end) == Some(request.sector);
        let early = now + self.overhead.read_hit_ns(sequential, after_write);
        if self.holds(now, request.sector..end) {
            self.reply_read(early, id, &request);
        } else {
            let miss = self.overhead.read_ns[1][usize::from(after_write)];
            self.serve_or_queue(WaitingCommand {
                early,
                sequential,
                ..self.waiting(now, miss, id, request, false)
            });
        }
    }

    /// Whether the buffer holds all the sectors although the mechanism is at work on something else.
    fn holds(&mut self, now: Nanos, sectors: Range<u64>) -> bool {
        if self.writes.holds(sectors.start, sectors.end) {
            return true;
        }
        let Some(job) = &self.job else { return false };
        let coming = job.sectors.start < sectors.end && sectors.start < job.sectors.end;
        !coming
            && self
                .reads
                .look_up(now, now, sectors.start, sectors.end, &self.mechanics)
                == CacheLookup::Hit
    }

    fn write(&mut self, now: Nanos, id: RequestId, request: Request) {
        self.last_read_end = None;
        let end = request.sector + u64::from(request.sectors);
        if let Some(arm) = self
            .reads
            .invalidate(now, request.sector, end, &self.mechanics)
        {
            self.arm = arm;
        }
        if self.write_cache_on && !request.fua {
            self.blocked.push_back((id, request));
            self.accept(now);
            return;
        }
        let before = self.follows_write(&request);
        self.last_write_end = Some(request.sector + u64::from(request.sectors));
        self.serve_or_queue(self.waiting(
            now,
            self.overhead.write_ns[1][before],
            id,
            request,
            true,
        ));
    }

    /// Index into the overheads: 1 for a command that continues the write just before it, 0 otherwise.
    fn follows_write(&self, request: &Request) -> usize {
        usize::from(self.last_write_end == Some(request.sector))
    }

    /// Accepts writes into the cache while they fit, and reports them.
    pub(super) fn accept(&mut self, now: Nanos) {
        while let Some(&(id, request)) = self.blocked.front() {
            if !self.writes.has_room(&request) {
                return;
            }
            self.blocked.pop_front();
            let before = self.follows_write(&request);
            self.last_write_end = Some(request.sector + u64::from(request.sectors));
            let overhead = self.overhead.write_ns[0][before];
            let place = self.mechanics.geometry.locate(request.sector);
            self.writes.add(&request, place);
            let received = self.occupy_bus(now + overhead, request.sectors);
            self.due
                .push(received + self.overhead.write_completion_ns, id);
        }
    }

    fn waiting(
        &self,
        now: Nanos,
        overhead: Nanos,
        id: RequestId,
        request: Request,
        write: bool,
    ) -> WaitingCommand {
        let place = self.mechanics.geometry.locate(request.sector);
        WaitingCommand {
            id,
            request,
            arrived: now,
            early: now + overhead,
            ready: now + overhead,
            place,
            write,
            sequential: false,
        }
    }

    /// Sends a read from the buffer.
    pub(super) fn reply_read(&mut self, ready: Nanos, id: RequestId, request: &Request) {
        let sent = self.occupy_bus(ready, request.sectors);
        self.due.push(sent + self.overhead.read_completion_ns, id);
    }

    /// Sends a read while it comes from the medium. The bus is done one sector after the medium, or later if
    /// the bus is slower.
    pub(super) fn reply_media(&mut self, waiting: &WaitingCommand, begin: Nanos, end: Nanos) {
        let sent = (end + self.bus_ns(1)).max(begin + self.bus_ns(waiting.request.sectors));
        self.due
            .push(sent + self.overhead.read_completion_ns, waiting.id);
    }

    fn occupy_bus(&mut self, ready: Nanos, sectors: u32) -> Nanos {
        self.bus_free = ready.max(self.bus_free) + self.bus_ns(sectors);
        self.bus_free
    }

    pub(super) fn bus_ns(&self, sectors: u32) -> Nanos {
        (f64::from(sectors) * self.bus_sector_ns) as Nanos
    }
}

impl Device for HardDisk {
    fn submit(&mut self, now: Nanos, id: RequestId, request: Request) {
        let now = self.time.to(now);
        let request = request.fitted(self.capacity_sectors());
        self.written.host_sectors += request.written_sectors();
        if self.flushes.holds_back() {
            self.flushes.held.push_back((id, request));
        } else {
            self.take(now, id, request);
            self.dispatch(now);
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        match (&self.job, self.due.next()) {
            (Some(job), Some(at)) => Some(job.end.min(at)),
            (Some(job), None) => Some(job.end),
            (None, at) => at,
        }
    }

    fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        let now = self.time.to(now);
        while let Some(event) = self.next_event().filter(|&event| event <= now) {
            match self.job.take_if(|job| job.end == event) {
                Some(job) => self.finish(&job),
                None => self.due.pop(completions),
            }
        }
    }

    fn capacity_sectors(&self) -> u64 {
        self.mechanics.geometry.capacity()
    }

    fn written(&self) -> WrittenSectors {
        self.written
    }
}
