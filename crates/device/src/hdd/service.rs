//! The mechanism's side of the disk: its next job and how long that takes.

use std::collections::VecDeque;
use std::ops::Range;

use super::disk::Disk;
use super::geometry::Place;
use super::readahead::Lookup;
use crate::driver::RESERVED;
use crate::hdd::mechanics::{Arm, Mechanics};
use crate::hdd::params::{QueueParams, QueuePolicy};
use crate::hdd::readahead::Fetched;
use crate::{Nanos, Request, RequestId};

impl Disk {
    /// Serves a command at once if the mechanism is free: then nothing else waits either.
    pub(super) fn serve_or_queue(&mut self, waiting: Waiting) {
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

    fn serve(&mut self, now: Nanos, waiting: &Waiting) {
        self.wrote_back = false;
        if waiting.write {
            self.write_medium(now, waiting);
        } else {
            self.read_medium(now, waiting);
        }
    }

    fn read_medium(&mut self, now: Nanos, waiting: &Waiting) {
        let Request {
            sector, sectors, ..
        } = waiting.request;
        let end = sector + u64::from(sectors);
        match self
            .reads
            .look_up(now, now.max(waiting.ready), sector, end, &self.mechanics)
        {
            Lookup::Hit => self.reply_read(waiting.early.max(now), waiting.id, &waiting.request),
            Lookup::Stream(at) => {
                self.start(at, Work::Command, sector..end);
                self.reply_media(waiting, waiting.early, at);
            }
            Lookup::Miss => {
                let from = now.max(waiting.ready);
                self.halt(from);
                let there = from + self.mechanics.read_move_ns(self.arm, &waiting.place);
                let begin = there + self.mechanics.wait_ns(there, waiting.place.angle);
                let (at, arm) =
                    self.mechanics
                        .pass(begin, sector, &waiting.place, u64::from(sectors), false);
                self.arm = arm;
                let fetched = Fetched {
                    sector,
                    sectors: u64::from(sectors),
                    place: &waiting.place,
                    arrived: there,
                    begin,
                    end: (at, arm),
                    sequential: waiting.sequential,
                };
                self.reads.insert(&fetched, &self.mechanics);
                self.start(at, Work::Command, sector..end);
                self.reply_media(waiting, begin, at);
            }
        }
        self.read_to = Some(end);
    }

    fn write_medium(&mut self, now: Nanos, waiting: &Waiting) {
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
        self.start(at, Work::Command, sector..end);
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
        let nearest = |places: &[Place]| {
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
        self.start(at, Work::WriteBack, dirty.sector..dirty.end);
        self.wrote_back = true;
        true
    }

    fn start(&mut self, end: Nanos, work: Work, sectors: Range<u64>) {
        self.job = Some(Job { end, work, sectors });
    }

    /// Ends reading ahead; the arm is then where reading ahead had come to.
    fn halt(&mut self, now: Nanos) {
        self.read_to = None;
        if let Some(arm) = self.reads.stop(now, &self.mechanics) {
            self.arm = arm;
        }
    }

    /// Ends a job, which the disk no longer holds, and starts the next.
    pub(super) fn finish(&mut self, job: &Job) {
        match job.work {
            Work::Command => {}
            Work::WriteBack => {
                self.writes.finish();
                self.end_queued_flushes(job.end);
                self.accept(job.end);
            }
            Work::Flush(id) => self.end_flush(job.end, id),
        }
        self.dispatch(job.end);
    }
}

// What the mechanism is doing.

/// What the mechanism is doing.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) end: Nanos,
    pub(super) work: Work,
    /// The sectors it moves between medium and buffer.
    pub(super) sectors: Range<u64>,
}

/// For whom the mechanism works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// A command from the queue.
    Command,
    /// The write cache.
    WriteBack,
    /// A flush that nothing else may overtake, with the cache written back.
    Flush(RequestId),
}

// The command queue: which command the drive serves next.
//
// First come, first served; or shortest seek or shortest positioning time first, with an age limit so that none
// starves (Seltzer, Chen, Ousterhout, USENIX 1990; Jacobson and Wilkes, HPL-CSP-91-7).

/// A command that waits for the mechanism.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) id: RequestId,
    pub(crate) request: Request,
    pub(crate) arrived: Nanos,
    /// When the handling of the command would be over, were it served from the buffer.
    pub(crate) early: Nanos,
    /// When the handling of the command is over and the arm may move.
    pub(crate) ready: Nanos,
    pub(crate) place: Place,
    pub(crate) write: bool,
    /// Whether it is a read that continues the read just before it.
    pub(crate) sequential: bool,
}

/// Commands the drive chooses among, followed by those that the drive has not taken yet.
#[derive(Debug)]
pub(crate) struct Queue {
    params: QueueParams,
    /// In order of arrival.
    taken: VecDeque<Waiting>,
    behind: VecDeque<Waiting>,
}

impl Queue {
    pub(crate) fn new(params: QueueParams) -> Self {
        let taken = VecDeque::with_capacity(params.depth as usize);
        Self {
            params,
            taken,
            behind: VecDeque::with_capacity(RESERVED),
        }
    }

    pub(crate) fn push(&mut self, waiting: Waiting) {
        if self.taken.len() < self.params.depth as usize {
            self.taken.push_back(waiting);
        } else {
            self.behind.push_back(waiting);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// Removes the command to serve next, for an arm free at `now`. `read_to` is the end of the read that the
    /// head is on, or reads ahead behind.
    pub(crate) fn pop(
        &mut self,
        now: Nanos,
        arm: Arm,
        read_to: Option<u64>,
        mechanics: &Mechanics,
    ) -> Option<Waiting> {
        let index = self
            .continuing(read_to)
            .unwrap_or_else(|| self.choose(now, arm, mechanics));
        let chosen = self.taken.remove(index)?;
        if let Some(next) = self.behind.pop_front() {
            self.taken.push_back(next);
        }
        Some(chosen)
    }

    /// A read that goes on where the head is, which takes no positioning at all.
    fn continuing(&self, read_to: Option<u64>) -> Option<usize> {
        if self.params.policy == QueuePolicy::Fcfs {
            return None;
        }
        let sector = read_to?;
        let goes_on = |waiting: &Waiting| waiting.request.sector == sector && !waiting.write;
        self.taken.iter().position(goes_on)
    }

    fn choose(&self, now: Nanos, arm: Arm, mechanics: &Mechanics) -> usize {
        let oldest_age = self
            .taken
            .front()
            .map_or(0, |waiting| now.saturating_sub(waiting.arrived));
        let policy = self.params.policy;
        if policy == QueuePolicy::Fcfs
            || oldest_age > self.params.age_limit_ns
            || self.taken.len() < 2
        {
            return 0;
        }
        let taken = self.taken.iter();
        let chosen = if policy == QueuePolicy::Sptf {
            let places =
                taken.map(|waiting| (now.max(waiting.ready), &waiting.place, waiting.write));
            mechanics.reached_first(arm, places)
        } else {
            let distance = |waiting: &Waiting| arm.cylinder.abs_diff(waiting.place.cylinder);
            let nearest = taken
                .enumerate()
                .min_by_key(|(_, waiting)| distance(waiting));
            nearest.map(|(index, _)| index)
        };
        chosen.unwrap_or(0)
    }
}
