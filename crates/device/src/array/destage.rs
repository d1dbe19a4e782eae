//! Destaging in the controller's write-back cache: which writes it accepts, and when the members get them.
//!
//! A stripe that is wholly dirty is destaged at once, without reads. A partly dirty one waits for its
//! neighbours until it is old, until more than half of the capacity is dirty, until a write needs space or
//! until a flush asks for it; then the oldest goes first.

use std::collections::VecDeque;

use super::cache::WriteCache;
use super::layout::Layout;
use super::level::Level;
use super::params::ControllerParams;
use crate::Nanos;
use crate::due::RESERVED;

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
