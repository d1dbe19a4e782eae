//! Flushes: what waits for the write cache, and for whom others wait.
//!
//! A queued flush (SCSI) ends when every write reported before it is on the medium, and other commands go on
//! meanwhile. A flush that cannot be queued (ATA) comes after all commands before it and holds back all behind it.

use std::collections::VecDeque;

use super::disk::{Disk, Job, Work};
use crate::due::RESERVED;
use crate::{Nanos, Request, RequestId};

/// A flush that waits.
#[derive(Clone, Copy, Debug)]
struct Pending {
    id: RequestId,
    /// Number of the last write reported before it.
    last_write: u64,
}

/// Flushes in order of arrival.
#[derive(Debug)]
pub(super) struct Flushes {
    drains: bool,
    pending: VecDeque<Pending>,
    /// Commands that a flush holds back.
    pub(super) held: VecDeque<(RequestId, Request)>,
}

impl Flushes {
    pub(super) fn new(drains: bool) -> Self {
        Self {
            drains,
            pending: VecDeque::with_capacity(RESERVED),
            held: VecDeque::with_capacity(RESERVED),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether commands that come now must wait for a flush.
    pub(super) fn holds_back(&self) -> bool {
        self.drains && !self.is_empty()
    }
}

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
