//! The controller's write cache: writes reported to the host but not yet destaged, gathered by stripe.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use super::model::{Array, Event, Owner};
use super::slab::Slab;
use crate::array::ControllerParams;
use crate::array::layout::{Layout, Level, Touched};
use crate::array::slab::{NONE, Runs};
use crate::driver::RESERVED;
use crate::random::GOLDEN_GAMMA;
use crate::{Nanos, Op, Request};

/// Dirty sectors of one line, gathered since the line was last destaged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    /// Number of the line.
    pub(super) line: u64,
    /// When the first write came.
    pub(super) born: Nanos,
    /// Number of the first write.
    pub(super) first_write: u64,
    runs: u32,
    sectors: u64,
    state: State,
    older: u32,
    newer: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Gathering,
    Full,
    Destaging,
}

/// The write cache. A line is the unit in which writes are gathered: a stripe of the array.
#[derive(Debug)]
pub(super) struct WriteCache {
    room: u64,
    line_sectors: u64,
    /// The batch that gathers the writes of a line.
    gathering: HashMap<u64, u32, BuildHasherDefault<LineHasher>>,
    batches: Slab<Batch>,
    runs: Runs,
    full: VecDeque<u32>,
    oldest: u32,
    newest: u32,
    /// No batch older than this one gathers.
    oldest_gathering: u32,
    sectors: u64,
    writes: u64,
    destaging: usize,
}

impl WriteCache {
    /// `room` is the capacity in dirty sectors.
    pub(super) fn new(room: u64, line_sectors: u64) -> Self {
        let lines = (room / 8).min(1 << 18) as usize;
        Self {
            room,
            line_sectors,
            gathering: HashMap::with_capacity_and_hasher(2 * lines, BuildHasherDefault::default()),
            batches: Slab::new(),
            runs: Runs::new(),
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
            if batch.sectors == self.line_sectors && batch.state == State::Gathering {
                batch.state = State::Full;
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
        let name = self.batches.insert(Batch {
            line,
            born: now,
            first_write: self.writes,
            runs: NONE,
            sectors: 0,
            state: State::Gathering,
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
            if batch.state == State::Gathering {
                return Some(self.oldest_gathering);
            }
            self.oldest_gathering = batch.newer;
        }
        None
    }

    /// Begins destaging a batch; later writes to its line form another. It keeps its space until it is done.
    pub(super) fn take(&mut self, name: u32) {
        let batch = &mut self.batches[name];
        batch.state = State::Destaging;
        self.gathering.remove(&batch.line);
        self.destaging += 1;
    }

    pub(super) fn batch(&self, name: u32) -> &Batch {
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
pub(super) struct Destage {
    pub(super) cache: WriteCache,
    pub(super) protected: bool,
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

// Writes through the controller's cache, as [`super::cache`] decides.

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
