//! Writes that were reported when they reached the cache and are not yet on the medium.

use std::collections::VecDeque;

use super::geometry::Place;
use super::params::HddParams;
use crate::driver::RESERVED;
use crate::{Request, RequestId};

/// Consecutive sectors that wait to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dirty {
    pub(crate) sector: u64,
    pub(crate) end: u64,
    /// Number of the last write in it, for flushes.
    pub(crate) last_write: u64,
}

/// Dirty stretches in order of arrival; neighbours are joined.
#[derive(Debug)]
pub(crate) struct WriteCache {
    dirty: Vec<Dirty>,
    /// Where the first sector of each lies. A separate list, since most searches need the sectors only.
    places: Vec<Place>,
    /// The stretch that the mechanism is writing: still takes space, no longer grows.
    writing: Option<Dirty>,
    sectors_max: u64,
    stretches_max: usize,
    sectors: u64,
    writes: u64,
}

impl WriteCache {
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
    pub(crate) fn add(&mut self, request: &Request, place: Place) {
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
            self.dirty.push(Dirty {
                sector,
                end,
                last_write,
            });
            self.places.push(place);
        }
    }

    /// Whether a read can be served from the dirty stretches.
    pub(crate) fn holds(&self, sector: u64, end: u64) -> bool {
        let inside = |dirty: &Dirty| dirty.sector <= sector && end <= dirty.end;
        self.writing.as_ref().is_some_and(inside) || self.dirty.iter().any(inside)
    }

    /// Starts writing a stretch; `choose` selects it by the places where the stretches begin.
    pub(crate) fn start(
        &mut self,
        choose: impl FnOnce(&[Place]) -> Option<usize>,
    ) -> Option<(Dirty, Place)> {
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
        let later = |dirty: &Dirty| dirty.last_write > write;
        self.writing.as_ref().is_none_or(later) && self.dirty.iter().all(later)
    }
}

// Flushes: those that wait for the write cache, and the commands that wait for a flush.
//
// A queued flush (SCSI) ends when every write reported before it is on the medium, and other commands go on
// meanwhile. A flush that cannot be queued (ATA) comes after all commands before it and holds back all behind it.

/// A flush that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) id: RequestId,
    /// Number of the last write reported before it.
    pub(super) last_write: u64,
}

/// Flushes in order of arrival.
#[derive(Debug)]
pub(super) struct Flushes {
    pub(super) drains: bool,
    pub(super) pending: VecDeque<Pending>,
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
