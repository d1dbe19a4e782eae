//! The disk's side of a flush: when it starts, and when it ends.

use super::disk::Disk;
use super::flush::Pending;
use super::job::{Job, Work};
use crate::{Nanos, RequestId};

impl Disk {
    pub(super) fn flush(&mut self, now: Nanos, id: RequestId) {
        let last_write = self.writes.latest();
        if !self.flushes.drains && self.writes.is_durable(last_write) {
            self.due.push(now + self.overhead.flush_ns, id);
        } else {
            self.flushes.pending.push_back(Pending { id, last_write });
        }
    }

    /// Starts a flush that holds others back, once nothing before it is left to do.
    pub(super) fn start_flush(&mut self, now: Nanos) {
        if !self.flushes.drains || !self.blocked.is_empty() {
            return;
        }
        self.job = self.flushes.pending.front().map(|flush| Job {
            end: now + self.overhead.flush_ns,
            work: Work::Flush(flush.id),
            sectors: 0..0,
        });
    }

    /// Ends a flush that held others back, and takes what it held.
    pub(super) fn end_flush(&mut self, now: Nanos, id: RequestId) {
        self.due.push(now, id);
        self.flushes.pending.pop_front();
        while !self.flushes.holds_back() {
            let Some((id, request)) = self.flushes.held.pop_front() else {
                return;
            };
            self.take(now, id, request);
        }
    }

    /// Ends the queued flushes whose writes are on the medium.
    pub(super) fn end_queued_flushes(&mut self, now: Nanos) {
        while !self.flushes.drains {
            let next = self.flushes.pending.front();
            let Some(&flush) = next.filter(|flush| self.writes.is_durable(flush.last_write)) else {
                return;
            };
            self.due.push(now + self.overhead.flush_ns, flush.id);
            self.flushes.pending.pop_front();
        }
    }
}
