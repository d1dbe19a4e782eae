//! The command queue: which command the drive serves next.
//!
//! First come, first served; or shortest positioning time first, with an age limit so that none starves
//! (Seltzer, Chen, Ousterhout, USENIX 1990; Jacobson and Wilkes, HPL-CSP-91-7).

use std::collections::VecDeque;
use std::ops::Range;

use super::geometry::SectorPlace;
use super::mechanics::{ArmPosition, DiskMechanics};
use super::params::{HddParams, QueueParams, QueuePolicy};
use crate::virtual_time_driver::RESERVED;
use crate::{Nanos, Request, RequestId};

/// A command that waits for the mechanism.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingCommand {
    pub(crate) id: RequestId,
    pub(crate) request: Request,
    pub(crate) arrived: Nanos,
    /// When the handling of the command would be over, were it served from the buffer.
    pub(crate) early: Nanos,
    /// When the handling of the command is over and the arm may move.
    pub(crate) ready: Nanos,
    pub(crate) place: SectorPlace,
    pub(crate) write: bool,
    /// Whether it is a read that continues the read just before it.
    pub(crate) sequential: bool,
}

/// Commands the drive chooses among, followed by those that the drive has not taken yet.
#[derive(Debug)]
pub(crate) struct Queue {
    params: QueueParams,
    /// In order of arrival.
    taken: VecDeque<WaitingCommand>,
    behind: VecDeque<WaitingCommand>,
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

    pub(crate) fn push(&mut self, waiting: WaitingCommand) {
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
        arm: ArmPosition,
        read_to: Option<u64>,
        mechanics: &DiskMechanics,
    ) -> Option<WaitingCommand> {
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
        let goes_on = |waiting: &WaitingCommand| waiting.request.sector == sector && !waiting.write;
        self.taken.iter().position(goes_on)
    }

    fn choose(&self, now: Nanos, arm: ArmPosition, mechanics: &DiskMechanics) -> usize {
        let oldest_age = self
            .taken
            .front()
            .map_or(0, |waiting| now.saturating_sub(waiting.arrived));
        if self.params.policy == QueuePolicy::Fcfs
            || oldest_age > self.params.age_limit_ns
            || self.taken.len() < 2
        {
            return 0;
        }
        let places = self
            .taken
            .iter()
            .map(|waiting| (now.max(waiting.ready), &waiting.place, waiting.write));
        mechanics.reached_first(arm, places).unwrap_or(0)
    }
}

// What the mechanism is doing.

/// What the mechanism is doing.
#[derive(Clone, Debug)]
pub(super) struct MechanismJob {
    pub(super) end: Nanos,
    pub(super) work: JobPurpose,
    /// The sectors it moves between medium and buffer.
    pub(super) sectors: Range<u64>,
}

/// For whom the mechanism works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobPurpose {
    /// A command from the queue.
    Command,
    /// The write cache.
    WriteBack,
    /// A flush that nothing else may overtake, with the cache written back.
    Flush(RequestId),
}

// Writes that were reported when they reached the cache and are not yet on the medium.

/// Consecutive sectors that wait to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirtyStretch {
    pub(crate) sector: u64,
    pub(crate) end: u64,
    /// Number of the last write in it, for flushes.
    pub(crate) last_write: u64,
}

/// Dirty stretches in order of arrival; neighbours are joined.
#[derive(Debug)]
pub(crate) struct DiskWriteCache {
    dirty: Vec<DirtyStretch>,
    /// Where the first sector of each lies. A separate list, since most searches need the sectors only.
    places: Vec<SectorPlace>,
    /// The stretch that the mechanism is writing: still takes space, no longer grows.
    writing: Option<DirtyStretch>,
    sectors_max: u64,
    stretches_max: usize,
    sectors: u64,
    writes: u64,
}

impl DiskWriteCache {
    pub(crate) fn new(params: &HddParams) -> Self {
        let stretches_max = params.cache.write_segments as usize;
        Self {
            dirty: Vec::with_capacity(stretches_max),
            places: Vec::with_capacity(stretches_max),
            writing: None,
            sectors_max: u64::from(params.cache.write_sectors),
            stretches_max,
            sectors: 0,
            writes: 0,
        }
    }

    /// Whether a write of that size fits now.
    pub(crate) fn has_room(&self, request: &Request) -> bool {
        let stretches = self.dirty.len() + usize::from(self.writing.is_some());
        let fits = self.sectors + u64::from(request.sectors) <= self.sectors_max;
        (fits || self.sectors == 0) && (stretches < self.stretches_max || self.follows(request))
    }

    /// Whether a write continues a dirty stretch.
    pub(crate) fn follows(&self, request: &Request) -> bool {
        self.dirty.iter().any(|dirty| dirty.end == request.sector)
    }

    /// Adds a write whose first sector lies at `place`.
    pub(crate) fn add(&mut self, request: &Request, place: SectorPlace) {
        self.writes += 1;
        let (sector, end) = (request.sector, request.sector + u64::from(request.sectors));
        let last_write = self.writes;
        let same = self
            .dirty
            .iter_mut()
            .find(|dirty| dirty.sector <= sector && sector <= dirty.end);
        if let Some(dirty) = same {
            self.sectors += end.saturating_sub(dirty.end);
            dirty.end = dirty.end.max(end);
            dirty.last_write = last_write;
        } else {
            self.sectors += u64::from(request.sectors);
            self.dirty.push(DirtyStretch {
                sector,
                end,
                last_write,
            });
            self.places.push(place);
        }
    }

    /// Whether a read can be served from the dirty stretches.
    pub(crate) fn holds(&self, sector: u64, end: u64) -> bool {
        let inside = |dirty: &DirtyStretch| dirty.sector <= sector && end <= dirty.end;
        self.writing.as_ref().is_some_and(inside) || self.dirty.iter().any(inside)
    }

    /// Starts writing a stretch; `choose` selects it by the places where the stretches begin.
    pub(crate) fn start(
        &mut self,
        choose: impl FnOnce(&[SectorPlace]) -> Option<usize>,
    ) -> Option<(DirtyStretch, SectorPlace)> {
        let index = choose(&self.places)?;
        let dirty = self.dirty.remove(index);
        self.writing = Some(dirty);
        Some((dirty, self.places.remove(index)))
    }

    /// The stretch being written is on the medium.
    pub(crate) fn finish(&mut self) {
        if let Some(done) = self.writing.take() {
            self.sectors -= done.end - done.sector;
        }
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.dirty.is_empty() && self.writing.is_none()
    }

    /// Number of the latest write.
    pub(crate) fn latest(&self) -> u64 {
        self.writes
    }

    /// Whether every write up to number `write` is on the medium.
    pub(crate) fn is_durable(&self, write: u64) -> bool {
        let later = |dirty: &DirtyStretch| dirty.last_write > write;
        self.writing.as_ref().is_none_or(later) && self.dirty.iter().all(later)
    }
}

// Flushes: those that wait for the write cache, and the commands that wait for a flush.
//
// A queued flush (SCSI) ends when every write reported before it is on the medium, and other commands go on
// meanwhile. A flush that cannot be queued (ATA) comes after all commands before it and holds back all behind it.

/// A flush that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingFlush {
    pub(super) id: RequestId,
    /// Number of the last write reported before it.
    pub(super) last_write: u64,
}

/// Flushes in order of arrival.
#[derive(Debug)]
pub(super) struct FlushQueue {
    pub(super) drains: bool,
    pub(super) pending: VecDeque<PendingFlush>,
    /// Commands that a flush holds back.
    pub(super) held: VecDeque<(RequestId, Request)>,
}

impl FlushQueue {
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
