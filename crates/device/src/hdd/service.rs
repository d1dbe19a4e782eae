//! The mechanism's side of the disk: its next job and how long that takes.

use std::ops::Range;

use super::geometry::SectorPlace;
use super::hard_disk::HardDisk;
use super::queue::WaitingCommand;
use super::readahead::CacheLookup;
use crate::hdd::queue::PendingFlush;
use crate::hdd::queue::{JobPurpose, MechanismJob};
use crate::hdd::readahead::FetchedRead;
use crate::{Nanos, Request, RequestId};

impl HardDisk {
    /// Serves a command at once if the mechanism is free: then nothing else waits either.
    pub(super) fn serve_or_queue(&mut self, waiting: WaitingCommand) {
        if self.job.is_none() && self.queue.is_empty() {
            self.serve(waiting.arrived, &waiting);
        } else {
            self.queue.push(waiting);
        }
    }

    /// Gives the mechanism work if it has none.
    pub(super) fn dispatch(&mut self, now: Nanos) {
        while self.job.is_none() {
            let waited_for = !self.flushes.is_empty() || !self.blocked.is_empty();
            let urgent = waited_for && !self.wrote_back;
            if (urgent || self.queue.is_empty()) && self.write_back(now) {
                return;
            }
            let next = self.queue.pop(now, self.arm, self.read_to, &self.mechanics);
            let Some(waiting) = next else {
                self.start_flush(now);
                return;
            };
            self.serve(now, &waiting);
        }
    }

    fn serve(&mut self, now: Nanos, waiting: &WaitingCommand) {
        self.wrote_back = false;
        if waiting.write {
            self.write_medium(now, waiting);
        } else {
            self.read_medium(now, waiting);
        }
    }

    fn read_medium(&mut self, now: Nanos, waiting: &WaitingCommand) {
        let Request {
            sector, sectors, ..
        } = waiting.request;
        let end = sector + u64::from(sectors);
        match self
            .reads
            .look_up(now, now.max(waiting.ready), sector, end, &self.mechanics)
        {
            CacheLookup::Hit => {
                self.reply_read(waiting.early.max(now), waiting.id, &waiting.request)
            }
            CacheLookup::Stream(at) => {
                self.start(at, JobPurpose::Command, sector..end);
                self.reply_media(waiting, waiting.early, at);
            }
            CacheLookup::Miss => {
                let from = now.max(waiting.ready);
                self.halt(from);
                let there = from + self.mechanics.read_move_ns(self.arm, &waiting.place);
                let begin = there + self.mechanics.wait_ns(there, waiting.place.angle);
                let (at, arm) =
                    self.mechanics
                        .pass(begin, sector, &waiting.place, u64::from(sectors), false);
                self.arm = arm;
                let fetched = FetchedRead {
                    sector,
                    sectors: u64::from(sectors),
                    place: &waiting.place,
                    arrived: there,
                    begin,
                    end: (at, arm),
                    sequential: waiting.sequential,
                };
                self.reads.insert(&fetched, &self.mechanics);
                self.start(at, JobPurpose::Command, sector..end);
                self.reply_media(waiting, begin, at);
            }
        }
        self.read_to = Some(end);
    }

    fn write_medium(&mut self, now: Nanos, waiting: &WaitingCommand) {
        let from = now.max(waiting.ready);
        self.halt(from);
        let received = waiting.ready + self.bus_ns(waiting.request.sectors);
        let behind_ns = self
            .mechanics
            .sectors_ns(waiting.place.zone, u64::from(waiting.request.sectors) - 1);
        let first = (waiting.ready + self.bus_ns(1)).max(received.saturating_sub(behind_ns));
        let there = (from + self.mechanics.move_ns(self.arm, &waiting.place, true)).max(first);
        let begin = there + self.mechanics.wait_ns(there, waiting.place.angle);
        let Request {
            sector, sectors, ..
        } = waiting.request;
        let (at, arm) =
            self.mechanics
                .pass(begin, sector, &waiting.place, u64::from(sectors), true);
        self.arm = arm;
        let end = sector + u64::from(sectors);
        self.reads.keep_written(sector, end);
        self.written.medium_sectors += end - sector;
        self.start(at, JobPurpose::Command, sector..end);
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
        let nearest = |places: &[SectorPlace]| {
            mechanics.reached_first(arm, places.iter().map(|place| (now, place, true)))
        };
        let Some((dirty, place)) = self.writes.start(nearest) else {
            return false;
        };
        let begin = mechanics.reach(now, arm, &place, true);
        let (at, arm) = mechanics.pass(begin, dirty.sector, &place, dirty.end - dirty.sector, true);
        self.arm = arm;
        self.reads.keep_written(dirty.sector, dirty.end);
        self.written.medium_sectors += dirty.end - dirty.sector;
        self.start(at, JobPurpose::WriteBack, dirty.sector..dirty.end);
        self.wrote_back = true;
        true
    }

    fn start(&mut self, end: Nanos, work: JobPurpose, sectors: Range<u64>) {
        self.job = Some(MechanismJob { end, work, sectors });
    }

    /// Ends reading ahead; the arm is then where reading ahead had come to.
    fn halt(&mut self, now: Nanos) {
        self.read_to = None;
        if let Some(arm) = self.reads.stop(now, &self.mechanics) {
            self.arm = arm;
        }
    }

    /// Ends a job, which the disk no longer holds, and starts the next.
    pub(super) fn finish(&mut self, job: &MechanismJob) {
        match job.work {
            JobPurpose::Command => {}
            JobPurpose::WriteBack => {
                self.writes.finish();
                self.end_queued_flushes(job.end);
                self.accept(job.end);
            }
            JobPurpose::Flush(id) => self.end_flush(job.end, id),
        }
        self.dispatch(job.end);
    }
}

// The disk's side of a flush: when it starts, and when it ends.

impl HardDisk {
    pub(super) fn flush(&mut self, now: Nanos, id: RequestId) {
        let last_write = self.writes.latest();
        if !self.flushes.drains && self.writes.is_durable(last_write) {
            self.due.push(now + self.overhead.flush_ns, id);
        } else {
            self.flushes
                .pending
                .push_back(PendingFlush { id, last_write });
        }
    }

    /// Starts a flush that holds others back, once nothing before it is left to do.
    pub(super) fn start_flush(&mut self, now: Nanos) {
        if !self.flushes.drains || !self.blocked.is_empty() {
            return;
        }
        self.job = self.flushes.pending.front().map(|flush| MechanismJob {
            end: now + self.overhead.flush_ns,
            work: JobPurpose::Flush(flush.id),
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
