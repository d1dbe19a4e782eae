//! Writes through the controller's cache, as [`super::controller_cache`] decides.

use super::disk_array::{ArrayEvent, DiskArray, TaskOwner};
use crate::array::controller_cache::DestageQueue;
use crate::array::raid_layout::OverwrittenPart;
use crate::{Nanos, Op, Request};

impl DiskArray {
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
        if let Some(at) = self.destage.as_mut().and_then(DestageQueue::await_age) {
            self.agenda.push(at.max(now), ArrayEvent::Age);
        }
    }

    fn destage_batch(&mut self, now: Nanos, batch: u32) {
        let Some(destage) = &self.destage else {
            return;
        };
        if self.layout.parity(0).is_some() {
            let row = destage.cache.batch(batch).line;
            self.write_row(now, TaskOwner::Batch(batch), row);
            return;
        }
        self.extents.clear();
        for (start, end) in destage.cache.dirty(batch) {
            self.layout.data(start, end - start, &mut self.extents);
        }
        let task = self.open_task(TaskOwner::Batch(batch), 0);
        self.send_writes(now, task, Op::Write, false);
    }

    /// Sets the touched part of a batch's row.
    pub(super) fn touch_dirty(&mut self, batch: u32) {
        self.touched.fill(OverwrittenPart::default());
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
        while let Some(host) = self.destage.as_mut().and_then(DestageQueue::flushed) {
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
