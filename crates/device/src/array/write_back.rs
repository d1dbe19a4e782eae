//! Writes through the controller's cache, as [`super::destage`] decides.

use std::collections::VecDeque;

use super::model::{Array, Event, Owner};
use crate::array::cache::WriteCache;
use crate::array::layout::{Layout, Touched};
use crate::array::params::{ControllerParams, Level};
use crate::driver::RESERVED;
use crate::{Nanos, Op, Request};

impl Array {
    /// Whether a write goes to the cache rather than through to the members.
    pub(super) fn takes(&self, write: &Request) -> bool {
        self.destage.as_ref().is_some_and(|destage| {
            u64::from(write.sectors) <= destage.cache.room() && (destage.protected || !write.fua)
        })
    }

    /// Whether a read finds all its sectors in the write cache.
    pub(super) fn is_cached(&self, read: &Request) -> bool {
        self.destage
            .as_ref()
            .is_some_and(|destage| destage.cache.holds(read.sector, u64::from(read.sectors)))
    }

    pub(super) fn cache_write(&mut self, now: Nanos, host: u32) {
        if let Some(destage) = &mut self.destage {
            destage.blocked.push_back(host);
        }
        self.admit(now);
        self.destage(now);
    }

    /// Accepts writes into the cache while they fit, and reports them.
    fn admit(&mut self, now: Nanos) {
        while let Some(destage) = &mut self.destage {
            let Some(&host) = destage.blocked.front() else {
                return;
            };
            let request = self.hosts[host].request;
            let sectors = u64::from(request.sectors);
            if !destage.cache.has_room(request.sector, sectors) {
                return;
            }
            destage.blocked.pop_front();
            destage.cache.add(now, request.sector, sectors);
            self.complete(now, host);
        }
    }

    /// Sends the members the batches that are due to be destaged.
    fn destage(&mut self, now: Nanos) {
        while let Some(batch) = self.destage.as_mut().and_then(|d| d.next_batch(now)) {
            self.destage_batch(now, batch);
        }
        if let Some(at) = self.destage.as_mut().and_then(Destage::await_age) {
            self.agenda.push(at.max(now), Event::Age);
        }
    }

    fn destage_batch(&mut self, now: Nanos, batch: u32) {
        let Some(destage) = &self.destage else {
            return;
        };
        if self.layout.parity(0).is_some() {
            let row = destage.cache.batch(batch).line;
            self.write_row(now, Owner::Batch(batch), row);
            return;
        }
        self.extents.clear();
        for (start, end) in destage.cache.dirty(batch) {
            self.layout.data(start, end - start, &mut self.extents);
        }
        let task = self.open_task(Owner::Batch(batch), 0);
        self.send_writes(now, task, Op::Write, false);
    }

    /// Sets the touched part of a batch's row.
    pub(super) fn touch_dirty(&mut self, batch: u32) {
        self.touched.fill(Touched::default());
        let Some(destage) = &self.destage else {
            return;
        };
        for (start, end) in destage.cache.dirty(batch) {
            self.layout.pieces(start, end - start, |spot, sectors| {
                self.touched[spot.column as usize].add(spot.offset, spot.offset + sectors);
            });
        }
    }

    /// A batch is on the members: its space is free, and flushes may be done.
    pub(super) fn batch_done(&mut self, now: Nanos, batch: u32) {
        if let Some(destage) = &mut self.destage {
            destage.cache.finish(batch);
        }
        self.admit(now);
        while let Some(host) = self.destage.as_mut().and_then(Destage::flushed) {
            self.flush_members(now, host);
        }
        self.destage(now);
    }

    /// A batch may have become old.
    pub(super) fn grow_old(&mut self, now: Nanos) {
        if let Some(destage) = &mut self.destage {
            destage.age_awaited = false;
        }
        self.destage(now);
    }

    /// A protected cache makes every accepted write durable. An unprotected one must be emptied first.
    pub(super) fn flush(&mut self, now: Nanos, host: u32) {
        match &mut self.destage {
            Some(destage) if destage.protected => self.complete(now, host),
            Some(destage) if !destage.cache.has_destaged(destage.cache.latest()) => {
                let last_write = destage.cache.latest();
                destage.flushes.push_back((host, last_write));
                self.destage(now);
            }
            _ => self.flush_members(now, host),
        }
    }
}

// Destaging in the controller's write-back cache: which writes it accepts, and when the members get them.
//
// A stripe that is wholly dirty is destaged at once, without reads. A partly dirty one waits for its
// neighbours until it is old, until more than half of the capacity is dirty, until a write needs space or
// until a flush asks for it; then the oldest goes first.

/// Share of the capacity above which the oldest are destaged.
const DESTAGE_ABOVE: f64 = 0.5;

/// Line size, in sectors, for the writes to a mirror, which has no stripes: 512 KiB.
const MIRROR_LINE_SECTORS: u64 = 1024;

/// The cache, and the writes and flushes that wait for it.
#[derive(Debug)]
pub(super) struct Destage {
    pub(super) cache: WriteCache,
    pub(super) protected: bool,
    depth: usize,
    age_ns: Nanos,
    destage_above: u64,
    /// Writes that wait for space, in order of arrival.
    pub(super) blocked: VecDeque<u32>,
    /// Flushes, each with the number of the last write before it.
    pub(super) flushes: VecDeque<(u32, u64)>,
    pub(super) age_awaited: bool,
}

impl Destage {
    /// `None` if nothing may be dirty.
    pub(super) fn new(params: &ControllerParams, layout: &Layout) -> Option<Self> {
        let line_sectors = match layout.level {
            Level::Raid1 => MIRROR_LINE_SECTORS,
            _ => layout.row_sectors(),
        };
        (params.dirty_sectors > 0).then(|| Self {
            cache: WriteCache::new(params.dirty_sectors, line_sectors),
            protected: params.protected,
            depth: params.destage_depth as usize,
            age_ns: params.destage_after_ns,
            destage_above: (params.dirty_sectors as f64 * DESTAGE_ABOVE) as u64,
            blocked: VecDeque::with_capacity(RESERVED),
            flushes: VecDeque::with_capacity(RESERVED),
            age_awaited: false,
        })
    }

    /// Takes the batch to destage now.
    pub(super) fn next_batch(&mut self, now: Nanos) -> Option<u32> {
        if self.cache.destaging() >= self.depth {
            return None;
        }
        if let Some(full) = self.cache.take_full() {
            return Some(full);
        }
        let oldest = self.cache.oldest_gathering()?;
        let urgent = self.is_urgent(oldest, now);
        urgent.then(|| {
            self.cache.take(oldest);
            oldest
        })
    }

    fn is_urgent(&self, batch: u32, now: Nanos) -> bool {
        let batch = self.cache.batch(batch);
        let flushed = |&(_, last_write): &(u32, u64)| batch.first_write <= last_write;
        !self.blocked.is_empty()
            || self.cache.sectors() > self.destage_above
            || batch.born + self.age_ns <= now
            || self.flushes.back().is_some_and(flushed)
    }

    /// Takes a flush whose writes are all on the members.
    pub(super) fn flushed(&mut self) -> Option<u32> {
        let &(host, last_write) = self.flushes.front()?;
        self.cache.has_destaged(last_write).then(|| {
            self.flushes.pop_front();
            host
        })
    }

    /// When the oldest batch becomes old, unless that is awaited already.
    pub(super) fn await_age(&mut self) -> Option<Nanos> {
        if self.age_awaited || self.cache.destaging() >= self.depth {
            return None;
        }
        let oldest = self.cache.oldest_gathering()?;
        self.age_awaited = true;
        Some(self.cache.batch(oldest).born + self.age_ns)
    }
}
