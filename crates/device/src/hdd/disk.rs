//! The disk as a [`Device`]: takes commands, keeps the mechanism busy, reports completions.

use std::collections::VecDeque;

use super::mechanics::{Arm, Mechanics};
use super::params::{HddParams, OverheadParams};
use super::queue::{Queue, Waiting};
use super::readahead::{Lookup, ReadCache};
use super::writeback::{Dirty, WriteCache};
use crate::due::{DueList, RESERVED};
use crate::{Completion, Device, Nanos, Op, Request, RequestId};

/// What the mechanism is doing.
#[derive(Clone, Copy, Debug)]
struct Job {
    end: Nanos,
    writes_back: bool,
}

/// A flush that waits for the write cache.
#[derive(Clone, Copy, Debug)]
struct PendingFlush {
    id: RequestId,
    last_write: u64,
}

/// The model of a hard disk.
#[derive(Debug)]
pub struct Disk {
    mechanics: Mechanics,
    overhead: OverheadParams,
    bus_sector_ns: f64,
    write_cache_on: bool,
    arm: Arm,
    job: Option<Job>,
    queue: Queue,
    reads: ReadCache,
    writes: WriteCache,
    /// Writes that wait for room in the write cache.
    blocked: VecDeque<(RequestId, Request)>,
    flushes: VecDeque<PendingFlush>,
    last_was_write: bool,
    wrote_back: bool,
    bus_free: Nanos,
    due: DueList,
}

impl Disk {
    /// A disk at rest with empty caches; the seed sets the platter's angle at time 0.
    pub fn new(params: &HddParams, seed: u64) -> Self {
        Self {
            mechanics: Mechanics::new(params, scatter(seed)),
            overhead: params.overhead.clone(),
            bus_sector_ns: params.bus_sector_ns,
            write_cache_on: params.write_cache,
            arm: Arm::default(),
            job: None,
            queue: Queue::new(params.queue.clone()),
            reads: ReadCache::new(&params.cache),
            writes: WriteCache::new(params),
            blocked: VecDeque::with_capacity(RESERVED),
            flushes: VecDeque::with_capacity(RESERVED),
            last_was_write: false,
            wrote_back: false,
            bus_free: 0,
            due: DueList::new(),
        }
    }

    fn read(&mut self, now: Nanos, id: RequestId, request: Request) {
        let end = request.sector + u64::from(request.sectors);
        let [hit, miss] = self.overhead.read_ns;
        let before = usize::from(std::mem::replace(&mut self.last_was_write, false));
        let held = self.writes.holds(request.sector, end)
            || (self.job.is_some()
                && self
                    .reads
                    .look_up(now, request.sector, end, &self.mechanics)
                    == Lookup::Hit);
        if held {
            self.reply_read(now + hit[before], id, &request);
        } else {
            let early = now + hit[before];
            self.enqueue(Waiting {
                early,
                ..self.waiting(now, miss[before], id, request, false)
            });
        }
    }

    fn write(&mut self, now: Nanos, id: RequestId, request: Request) {
        self.reads
            .invalidate(request.sector, request.sector + u64::from(request.sectors));
        if self.write_cache_on && !request.fua {
            self.blocked.push_back((id, request));
            self.accept(now);
            return;
        }
        let before = usize::from(std::mem::replace(&mut self.last_was_write, true));
        self.enqueue(self.waiting(now, self.overhead.write_ns[1][before], id, request, true));
    }

    /// Takes writes into the cache while there is room, and reports them.
    fn accept(&mut self, now: Nanos) {
        while let Some(&(id, request)) = self.blocked.front() {
            if !self.writes.has_room(&request) {
                return;
            }
            self.blocked.pop_front();
            let before = usize::from(std::mem::replace(&mut self.last_was_write, true));
            let overhead = self.overhead.write_ns[0][before];
            self.writes.add(&request);
            let received = self.occupy_bus(now + overhead, request.sectors);
            self.due
                .push(received + self.overhead.write_completion_ns, id);
        }
    }

    fn flush(&mut self, now: Nanos, id: RequestId) {
        let last_write = self.writes.latest();
        if self.writes.is_durable(last_write) {
            self.due.push(now + self.overhead.flush_ns, id);
        } else {
            self.flushes.push_back(PendingFlush { id, last_write });
        }
    }

    fn waiting(
        &self,
        now: Nanos,
        overhead: Nanos,
        id: RequestId,
        request: Request,
        write: bool,
    ) -> Waiting {
        let place = self.mechanics.geometry.locate(request.sector);
        Waiting {
            id,
            request,
            arrived: now,
            early: now + overhead,
            ready: now + overhead,
            place,
            write,
        }
    }

    fn enqueue(&mut self, waiting: Waiting) {
        self.queue.push(waiting);
    }

    /// Gives the mechanism work if it has none.
    fn dispatch(&mut self, now: Nanos) {
        while self.job.is_none() {
            let urgent = !self.flushes.is_empty() || (!self.blocked.is_empty() && !self.wrote_back);
            if (urgent || self.queue.is_empty()) && self.write_back(now) {
                return;
            }
            let Some(waiting) = self.queue.pop(now, self.arm, &self.mechanics) else {
                return;
            };
            self.wrote_back = false;
            if waiting.write {
                self.write_medium(now, &waiting)
            } else {
                self.read_medium(now, &waiting)
            }
        }
    }

    fn read_medium(&mut self, now: Nanos, waiting: &Waiting) {
        let Request {
            sector, sectors, ..
        } = waiting.request;
        let end = sector + u64::from(sectors);
        match self.reads.look_up(now, sector, end, &self.mechanics) {
            Lookup::Hit => self.reply_read(waiting.early.max(now), waiting.id, &waiting.request),
            Lookup::Stream(at) => {
                self.start(at, false);
                self.reply_media(waiting, waiting.early, at);
            }
            Lookup::Miss => {
                let from = now.max(waiting.ready);
                self.halt(from);
                let begin = self.mechanics.reach(from, self.arm, &waiting.place, false);
                let (at, arm) =
                    self.mechanics
                        .pass(begin, sector, &waiting.place, u64::from(sectors), false);
                self.arm = arm;
                self.reads.insert(sector, end, at, arm, &self.mechanics);
                self.start(at, false);
                self.reply_media(waiting, begin, at);
            }
        }
    }

    fn write_medium(&mut self, now: Nanos, waiting: &Waiting) {
        let from = now.max(waiting.ready);
        self.halt(from);
        let received = waiting.ready + self.bus_ns(waiting.request.sectors);
        let there = (from + self.mechanics.move_ns(self.arm, &waiting.place, true)).max(received);
        let begin = there + self.mechanics.wait_ns(there, waiting.place.angle);
        let Request {
            sector, sectors, ..
        } = waiting.request;
        let (at, arm) =
            self.mechanics
                .pass(begin, sector, &waiting.place, u64::from(sectors), true);
        self.arm = arm;
        self.reads.keep_written(sector, sector + u64::from(sectors));
        self.start(at, false);
        self.due
            .push(at + self.overhead.write_completion_ns, waiting.id);
    }

    /// Starts writing back the dirty stretch that is reached first; false if there is none.
    fn write_back(&mut self, now: Nanos) -> bool {
        if self.writes.is_clean() {
            return false;
        }
        self.halt(now);
        let (mechanics, arm) = (&self.mechanics, self.arm);
        let reach = |dirty: &Dirty| {
            mechanics.reach(now, arm, &mechanics.geometry.locate(dirty.sector), true)
        };
        let nearest = |all: &[Dirty]| (0..all.len()).min_by_key(|&index| reach(&all[index]));
        let Some(dirty) = self.writes.start(nearest) else {
            return false;
        };
        let place = mechanics.geometry.locate(dirty.sector);
        let begin = mechanics.reach(now, arm, &place, true);
        let (at, arm) = mechanics.pass(begin, dirty.sector, &place, dirty.end - dirty.sector, true);
        self.arm = arm;
        self.reads.keep_written(dirty.sector, dirty.end);
        self.start(at, true);
        self.wrote_back = true;
        true
    }

    fn start(&mut self, end: Nanos, writes_back: bool) {
        self.job = Some(Job { end, writes_back });
    }

    /// Ends reading ahead; the arm is then where that had come to.
    fn halt(&mut self, now: Nanos) {
        if let Some(arm) = self.reads.stop(now, &self.mechanics) {
            self.arm = arm;
        }
    }

    fn finish(&mut self, job: Job) {
        self.job = None;
        if job.writes_back {
            self.writes.finish();
            while let Some(flush) = self
                .flushes
                .front()
                .filter(|flush| self.writes.is_durable(flush.last_write))
            {
                self.due.push(job.end + self.overhead.flush_ns, flush.id);
                self.flushes.pop_front();
            }
            self.accept(job.end);
        }
        self.dispatch(job.end);
    }

    /// Sends a read from the buffer.
    fn reply_read(&mut self, ready: Nanos, id: RequestId, request: &Request) {
        let sent = self.occupy_bus(ready, request.sectors);
        self.due.push(sent + self.overhead.read_completion_ns, id);
    }

    /// Sends a read while it comes from the medium: the bus is done one sector after the medium, or later if
    /// it is the slower one.
    fn reply_media(&mut self, waiting: &Waiting, begin: Nanos, end: Nanos) {
        let sent = (end + self.bus_ns(1)).max(begin + self.bus_ns(waiting.request.sectors));
        self.due
            .push(sent + self.overhead.read_completion_ns, waiting.id);
    }

    fn occupy_bus(&mut self, ready: Nanos, sectors: u32) -> Nanos {
        self.bus_free = ready.max(self.bus_free) + self.bus_ns(sectors);
        self.bus_free
    }

    fn bus_ns(&self, sectors: u32) -> Nanos {
        (f64::from(sectors) * self.bus_sector_ns) as Nanos
    }
}

impl Device for Disk {
    fn submit(&mut self, now: Nanos, id: RequestId, request: Request) {
        match request.op {
            Op::Read => self.read(now, id, request),
            Op::Write => self.write(now, id, request),
            Op::Flush => self.flush(now, id),
            Op::Discard => self.due.push(now + self.overhead.flush_ns, id),
        }
        self.dispatch(now);
    }

    fn next_event(&self) -> Option<Nanos> {
        match (self.job, self.due.next()) {
            (Some(job), Some(at)) => Some(job.end.min(at)),
            (Some(job), None) => Some(job.end),
            (None, at) => at,
        }
    }

    fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        while let Some(event) = self.next_event().filter(|&event| event <= now) {
            match self.job {
                Some(job) if job.end == event => self.finish(job),
                _ => self.due.pop(completions),
            }
        }
    }

    fn capacity_sectors(&self) -> u64 {
        self.mechanics.geometry.capacity()
    }
}

/// Spreads a seed over 64 bits (the finalizer of SplitMix64); 0 stays 0.
fn scatter(seed: u64) -> u64 {
    let mut bits = seed;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
