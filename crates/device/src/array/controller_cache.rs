//! The controller's write cache: writes reported to the host but not yet destaged, gathered by stripe.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use crate::Nanos;
use crate::array::ControllerParams;
use crate::array::raid_layout::{RaidLayout, RaidLevel};
use crate::random::GOLDEN_GAMMA;
use crate::virtual_time_driver::RESERVED;

/// Dirty sectors of one line, gathered since the line was last destaged.
#[derive(Clone, Copy, Debug)]
pub(super) struct DestageBatch {
    /// Number of the line.
    pub(super) line: u64,
    /// When the first write came.
    pub(super) born: Nanos,
    /// Number of the first write.
    pub(super) first_write: u64,
    runs: u32,
    sectors: u64,
    state: BatchState,
    older: u32,
    newer: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchState {
    Gathering,
    Full,
    Destaging,
}

/// The write cache. A line is the unit in which writes are gathered: a stripe of the array.
#[derive(Debug)]
pub(super) struct ControllerWriteCache {
    room: u64,
    line_sectors: u64,
    /// The batch that gathers the writes of a line.
    gathering: HashMap<u64, u32, BuildHasherDefault<LineHasher>>,
    batches: Slab<DestageBatch>,
    runs: SectorRunLists,
    full: VecDeque<u32>,
    oldest: u32,
    newest: u32,
    /// No batch older than this one gathers.
    oldest_gathering: u32,
    sectors: u64,
    writes: u64,
    destaging: usize,
}

impl ControllerWriteCache {
    /// `room` is the capacity in dirty sectors.
    pub(super) fn new(room: u64, line_sectors: u64) -> Self {
        let lines = (room / 8).min(1 << 18) as usize;
        Self {
            room,
            line_sectors,
            gathering: HashMap::with_capacity_and_hasher(2 * lines, BuildHasherDefault::default()),
            batches: Slab::new(),
            runs: SectorRunLists::new(),
            full: VecDeque::with_capacity(lines),
            oldest: NONE,
            newest: NONE,
            oldest_gathering: NONE,
            sectors: 0,
            writes: 0,
            destaging: 0,
        }
    }

    /// Capacity: the largest number of dirty sectors.
    pub(super) fn room(&self) -> u64 {
        self.room
    }

    /// Number of dirty sectors.
    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Number of batches that are being destaged.
    pub(super) fn destaging(&self) -> usize {
        self.destaging
    }

    /// Number of the latest write.
    pub(super) fn latest(&self) -> u64 {
        self.writes
    }

    /// Whether every write up to that number is on the members.
    pub(super) fn has_destaged(&self, write: u64) -> bool {
        self.oldest == NONE || self.batches[self.oldest].first_write > write
    }

    /// Whether these sectors fit; sectors that replace dirty ones need no further space.
    pub(super) fn has_room(&self, sector: u64, sectors: u64) -> bool {
        self.sectors + sectors <= self.room
            || self.sectors + sectors - self.overlap(sector, sectors) <= self.room
    }

    /// Whether a read finds all its sectors among the gathered writes.
    pub(super) fn holds(&self, sector: u64, sectors: u64) -> bool {
        self.overlap(sector, sectors) == sectors
    }

    fn overlap(&self, sector: u64, sectors: u64) -> u64 {
        self.lines(sector, sectors)
            .filter_map(|(line, start, end)| {
                let batch = self.gathering.get(&line)?;
                Some(self.runs.overlap(self.batches[*batch].runs, start, end))
            })
            .sum()
    }

    pub(super) fn add(&mut self, now: Nanos, sector: u64, sectors: u64) {
        self.writes += 1;
        for (line, start, end) in self.lines(sector, sectors) {
            let name = match self.gathering.get(&line) {
                Some(&name) => name,
                None => self.begin(now, line),
            };
            let batch = &mut self.batches[name];
            let added = self.runs.add(&mut batch.runs, start, end);
            batch.sectors += added;
            self.sectors += added;
            if batch.sectors == self.line_sectors && batch.state == BatchState::Gathering {
                batch.state = BatchState::Full;
                self.full.push_back(name);
            }
        }
    }

    /// The parts of a range in each line, as offsets in the line.
    fn lines(&self, sector: u64, sectors: u64) -> impl Iterator<Item = (u64, u64, u64)> + use<> {
        let (size, end) = (self.line_sectors, sector + sectors);
        (sector / size..end.div_ceil(size)).map(move |line| {
            let base = line * size;
            (line, sector.max(base) - base, end.min(base + size) - base)
        })
    }

    fn begin(&mut self, now: Nanos, line: u64) -> u32 {
        let name = self.batches.insert(DestageBatch {
            line,
            born: now,
            first_write: self.writes,
            runs: NONE,
            sectors: 0,
            state: BatchState::Gathering,
            older: self.newest,
            newer: NONE,
        });
        match self.newest {
            NONE => self.oldest = name,
            newest => self.batches[newest].newer = name,
        }
        self.newest = name;
        if self.oldest_gathering == NONE {
            self.oldest_gathering = name;
        }
        self.gathering.insert(line, name);
        name
    }

    /// The next whole line to destage.
    pub(super) fn take_full(&mut self) -> Option<u32> {
        let name = self.full.pop_front()?;
        self.take(name);
        Some(name)
    }

    /// The oldest batch that is not a whole line and is not on its way.
    pub(super) fn oldest_gathering(&mut self) -> Option<u32> {
        while self.oldest_gathering != NONE {
            let batch = &self.batches[self.oldest_gathering];
            if batch.state == BatchState::Gathering {
                return Some(self.oldest_gathering);
            }
            self.oldest_gathering = batch.newer;
        }
        None
    }

    /// Begins destaging a batch; later writes to its line form another. It keeps its space until it is done.
    pub(super) fn take(&mut self, name: u32) {
        let batch = &mut self.batches[name];
        batch.state = BatchState::Destaging;
        self.gathering.remove(&batch.line);
        self.destaging += 1;
    }

    pub(super) fn batch(&self, name: u32) -> &DestageBatch {
        &self.batches[name]
    }

    /// The dirty stretches of a batch, as sectors of the array.
    pub(super) fn dirty(&self, name: u32) -> impl Iterator<Item = (u64, u64)> {
        let batch = &self.batches[name];
        let base = batch.line * self.line_sectors;
        self.runs
            .iter(batch.runs)
            .map(move |(start, end)| (base + start, base + end))
    }

    /// Removes a batch that is on the members.
    pub(super) fn finish(&mut self, name: u32) {
        let batch = self.batches.remove(name);
        self.runs.free(batch.runs);
        self.sectors -= batch.sectors;
        self.destaging -= 1;
        match batch.older {
            NONE => self.oldest = batch.newer,
            older => self.batches[older].newer = batch.newer,
        }
        match batch.newer {
            NONE => self.newest = batch.older,
            newer => self.batches[newer].older = batch.older,
        }
        if self.oldest_gathering == name {
            self.oldest_gathering = batch.newer;
        }
    }
}

/// Multiplicative hashing of line numbers (Knuth, volume 3, section 6.4).
#[derive(Debug, Default)]
struct LineHasher(u64);

impl Hasher for LineHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0 ^ u64::from(byte));
        }
    }

    fn write_u64(&mut self, line: u64) {
        let product = line.wrapping_mul(GOLDEN_GAMMA);
        self.0 = product ^ (product >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

// Destaging in the controller's write-back cache: which writes it accepts, and when the members get them.
//
// A stripe that is wholly dirty is destaged at once, without reads. A partly dirty one waits for its
// neighbours until it is old, until more than half of the capacity is dirty, until a write needs space or
// until a flush asks for it; then the oldest goes first.

/// Share of the capacity above which the oldest are destaged.
const DESTAGE_ABOVE: f64 = 0.5;

/// Age at which a stripe that is not whole is destaged, in nanoseconds.
const DESTAGE_AFTER_NS: Nanos = 1_000_000_000;

/// Stripes that are destaged at the same time.
const DESTAGE_DEPTH: usize = 32;

/// Line size, in sectors, for the writes to a mirror, which has no stripes: 512 KiB.
const MIRROR_LINE_SECTORS: u64 = 1024;

/// The cache, and the writes and flushes that wait for it.
#[derive(Debug)]
pub(super) struct DestageQueue {
    pub(super) cache: ControllerWriteCache,
    pub(super) protected: bool,
    destage_above: u64,
    /// Writes that wait for space, in order of arrival.
    pub(super) blocked: VecDeque<u32>,
    /// Flushes, each with the number of the last write before it.
    pub(super) flushes: VecDeque<(u32, u64)>,
    pub(super) age_awaited: bool,
}

impl DestageQueue {
    /// `None` if nothing may be dirty.
    pub(super) fn new(params: &ControllerParams, layout: &RaidLayout) -> Option<Self> {
        let line_sectors = match layout.level {
            RaidLevel::Raid1 => MIRROR_LINE_SECTORS,
            _ => layout.row_sectors(),
        };
        (params.dirty_sectors > 0).then(|| Self {
            cache: ControllerWriteCache::new(params.dirty_sectors, line_sectors),
            protected: params.protected,
            destage_above: (params.dirty_sectors as f64 * DESTAGE_ABOVE) as u64,
            blocked: VecDeque::with_capacity(RESERVED),
            flushes: VecDeque::with_capacity(RESERVED),
            age_awaited: false,
        })
    }

    /// Takes the batch to destage now.
    pub(super) fn next_batch(&mut self, now: Nanos) -> Option<u32> {
        if self.cache.destaging() >= DESTAGE_DEPTH {
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
            || batch.born + DESTAGE_AFTER_NS <= now
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
        if self.age_awaited || self.cache.destaging() >= DESTAGE_DEPTH {
            return None;
        }
        let oldest = self.cache.oldest_gathering()?;
        self.age_awaited = true;
        Some(self.cache.batch(oldest).born + DESTAGE_AFTER_NS)
    }
}

// Records named by a number while they live; freed slots are used again.

/// A growing store that allocates only when more records live than ever before.
#[derive(Debug)]
pub(super) struct Slab<T> {
    records: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    pub(super) fn new() -> Self {
        Self {
            records: Vec::with_capacity(RESERVED),
            free: Vec::with_capacity(RESERVED),
        }
    }

    pub(super) fn insert(&mut self, record: T) -> u32 {
        if let Some(name) = self.free.pop() {
            self.records[name as usize] = record;
            return name;
        }
        self.records.push(record);
        (self.records.len() - 1) as u32
    }

    pub(super) fn remove(&mut self, name: u32) -> T {
        self.free.push(name);
        self.records[name as usize]
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, name: u32) -> &T {
        &self.records[name as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, name: u32) -> &mut T {
        &mut self.records[name as usize]
    }
}

// Disjoint runs of sectors in order of address; one store holds many short lists.

/// Name of no record.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct SectorRun {
    start: u64,
    end: u64,
    next: u32,
}

/// The store; a list is the name of its first run, or [`NONE`].
#[derive(Debug)]
pub(super) struct SectorRunLists(Slab<SectorRun>);

impl SectorRunLists {
    pub(super) fn new() -> Self {
        Self(Slab::new())
    }

    /// Adds sectors to a list, joining runs that meet; returns how many were not in it.
    pub(super) fn add(&mut self, list: &mut u32, start: u64, end: u64) -> u64 {
        let added = end - start - self.overlap(*list, start, end);
        let (mut before, mut run) = (NONE, *list);
        while run != NONE && self.0[run].end < start {
            (before, run) = (run, self.0[run].next);
        }
        let mut joined = SectorRun {
            start,
            end,
            next: run,
        };
        while run != NONE && self.0[run].start <= joined.end {
            let old = self.0.remove(run);
            joined = SectorRun {
                start: joined.start.min(old.start),
                end: joined.end.max(old.end),
                next: old.next,
            };
            run = old.next;
        }
        let joined = self.0.insert(joined);
        match before {
            NONE => *list = joined,
            before => self.0[before].next = joined,
        }
        added
    }

    /// How many of the sectors are in the list.
    pub(super) fn overlap(&self, list: u32, start: u64, end: u64) -> u64 {
        self.iter(list)
            .map(|(from, to)| to.min(end).saturating_sub(from.max(start)))
            .sum()
    }

    /// The runs of a list.
    pub(super) fn iter(&self, list: u32) -> impl Iterator<Item = (u64, u64)> {
        let mut run = list;
        std::iter::from_fn(move || {
            (run != NONE).then(|| {
                let SectorRun { start, end, next } = self.0[run];
                run = next;
                (start, end)
            })
        })
    }

    /// Frees a list.
    pub(super) fn free(&mut self, list: u32) {
        let mut run = list;
        while run != NONE {
            run = self.0.remove(run).next;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_list_is_a_set_of_sectors(adds in prop::collection::vec((0_u64..60, 1_u64..12), 1..40)) {
            let live = |runs: &SectorRunLists| runs.0.records.len() - runs.0.free.len();
            let mut runs = SectorRunLists::new();
            let mut list = NONE;
            let mut set = BTreeSet::new();
            for (start, length) in adds {
                let before = set.len();
                set.extend(start..start + length);
                let added = runs.add(&mut list, start, start + length);
                prop_assert_eq!(added, (set.len() - before) as u64);
                let all: Vec<_> = runs.iter(list).collect();
                prop_assert!(all.windows(2).all(|pair| pair[0].1 < pair[1].0), "{:?} meet", all);
                prop_assert_eq!(live(&runs), all.len());
                let held: BTreeSet<u64> = all.iter().flat_map(|&(from, to)| from..to).collect();
                prop_assert_eq!(&held, &set);
            }
            runs.free(list);
            prop_assert_eq!(live(&runs), 0);
        }
    }
}
