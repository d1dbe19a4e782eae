//! Dirty pages: written into the page cache, not yet on their device.
//!
//! Source: Linux's write-back (Documentation/admin-guide/sysctl/vm.rst). The flusher wakes every 5 s and
//! writes files that have been dirty for 30 s; above 10 % of memory it writes at once. Writers are blocked so
//! that dirty pages, with those under way, stay below 20 % (mm/page-writeback.c: about midway between the
//! limit and the mean of both). In a control group of version 1 those shares are of the machine, not of the
//! group: pages stay dirty until they are the oldest in the group's memory, then the flusher writes all
//! (mm/vmscan.c), and a writer waits where all pages are dirty. The recording shows which rule applies: if
//! more was dirty than the shares allow, the observed maximum is the memory's capacity. Files are written in
//! order of their pages. Not modelled: limits by device.

use std::collections::BTreeMap;

use tierwise_device::Nanos;
use tierwise_recording::{PAGE_BYTES, PAGE_SECTORS, Role};

/// How long a page may stay dirty.
const EXPIRES_NS: Nanos = 30_000_000_000;
const BACKGROUND_SHARE: f64 = 0.10;
const LIMIT_SHARE: f64 = 0.20;
/// Longest write of the flusher: 1 MiB.
const LONGEST_PAGES: u64 = 256;

/// The dirty pages of one role.
#[derive(Debug, Default)]
struct RoleDirtyPages {
    pages: PageSet,
    count: u64,
    since: Nanos,
    /// Pages inserted into the cache by then.
    inserted: u64,
    /// Where the flusher continues; none if it does not write this role.
    sweep: Option<u64>,
    sweep_began_at: Nanos,
    sweep_inserted: u64,
}

/// The dirty pages of all roles.
#[derive(Debug)]
pub(crate) struct DirtyPages {
    roles: [RoleDirtyPages; Role::ALL.len()],
    count: u64,
    /// Pages being written.
    under_way: u64,
    /// Pages inserted into the cache so far.
    inserted: u64,
    /// Size of the cache in pages, where it limits dirty pages.
    capacity: Option<u64>,
    background: u64,
    limit: u64,
}

impl DirtyPages {
    /// `most_dirty_bytes`: observed maximum of dirty bytes; `sectors`: size of each role.
    pub(crate) fn new(
        memory_bytes: u64,
        most_dirty_bytes: u64,
        sectors: impl Fn(Role) -> u64,
    ) -> Self {
        let pages = memory_bytes as f64 / PAGE_BYTES as f64;
        let limit = (dirty_limit_bytes(memory_bytes) / PAGE_BYTES).max(1);
        let seen = most_dirty_bytes / PAGE_BYTES;
        let dirty = |index: usize| RoleDirtyPages {
            pages: PageSet::new(sectors(Role::ALL[index]).div_ceil(PAGE_SECTORS)),
            ..RoleDirtyPages::default()
        };
        Self {
            roles: std::array::from_fn(dirty),
            count: 0,
            under_way: 0,
            inserted: 0,
            capacity: (seen > limit).then_some(seen),
            background: (pages * BACKGROUND_SHARE) as u64,
            limit: limit.max(seen),
        }
    }

    /// Whether writers must wait.
    pub(crate) fn is_full(&self) -> bool {
        self.count + self.under_way >= self.limit
    }

    /// Notes pages sent to the device.
    pub(crate) fn sent(&mut self, sectors: u32) {
        self.under_way += pages_of_sectors(sectors);
    }

    /// Notes pages written by the device.
    pub(crate) fn written(&mut self, sectors: u32) {
        self.under_way -= pages_of_sectors(sectors);
    }

    /// Marks the pages of a write as dirty.
    pub(crate) fn write(&mut self, now: Nanos, role: Role, sector: u64, sectors: u32) {
        let dirty = &mut self.roles[role as usize];
        if dirty.count == 0 {
            (dirty.since, dirty.inserted) = (now, self.inserted);
        }
        let added = dirty.change(sector, sectors, true);
        dirty.count += added;
        self.count += added;
        self.inserted += added;
    }

    /// Notes pages read into the cache.
    pub(crate) fn read(&mut self, sectors: u32) {
        self.inserted += pages_of_sectors(sectors);
    }

    /// Marks pages as clean: they are being written, or discarded.
    pub(crate) fn clean(&mut self, role: Role, sector: u64, sectors: u32) {
        let dirty = &mut self.roles[role as usize];
        let removed = dirty.change(sector, sectors, false);
        dirty.count -= removed;
        self.count -= removed;
    }

    /// Starts write-back of files whose pages are too old, or of all files where too many are dirty.
    pub(crate) fn begin_write_back(&mut self, now: Nanos) {
        let much = self.over_background_limit() || self.is_full();
        for dirty in &mut self.roles {
            let old = now >= dirty.since + EXPIRES_NS;
            if dirty.sweep.is_none() && dirty.count > 0 && (old || much) {
                dirty.sweep = Some(0);
                (dirty.sweep_began_at, dirty.sweep_inserted) = (now, self.inserted);
            }
        }
    }

    /// The first run of a role's dirty pages between two sectors; marks it clean.
    pub(crate) fn next_dirty(&mut self, role: Role, from: u64, end: u64) -> Option<(u64, u32)> {
        let dirty = &self.roles[role as usize];
        let (page, pages) = dirty.run(from.div_ceil(PAGE_SECTORS))?;
        let end = end.div_ceil(PAGE_SECTORS);
        if page >= end {
            return None;
        }
        let pages = pages.min(end - page);
        let run = (page * PAGE_SECTORS, (pages * PAGE_SECTORS) as u32);
        self.clean(role, run.0, run.1);
        Some(run)
    }

    /// Whether dirty pages exceed the background limit.
    pub(crate) fn over_background_limit(&self) -> bool {
        let Some(capacity) = self.capacity else {
            return self.count > self.background;
        };
        let mut dirty = self.roles.iter().filter(|dirty| dirty.count > 0);
        dirty.any(|dirty| dirty.sweep.is_none() && self.inserted >= dirty.inserted + capacity)
    }

    /// The flusher's next write of a role, as sector and sectors; marks it clean.
    pub(crate) fn next_write_back(&mut self, role: Role) -> Option<(u64, u32)> {
        let dirty = &mut self.roles[role as usize];
        let from = dirty.sweep?;
        let Some((page, pages)) = dirty.run(from) else {
            dirty.sweep = None;
            (dirty.since, dirty.inserted) = (dirty.sweep_began_at, dirty.sweep_inserted);
            return None;
        };
        dirty.sweep = Some(page + pages);
        let (sector, sectors) = (page * PAGE_SECTORS, (pages * PAGE_SECTORS) as u32);
        self.clean(role, sector, sectors);
        Some((sector, sectors))
    }
}

/// Limit of dirty bytes, where shares of memory are the limit.
pub(crate) fn dirty_limit_bytes(memory_bytes: u64) -> u64 {
    let midway = (BACKGROUND_SHARE + 3.0 * LIMIT_SHARE) / 4.0;
    (memory_bytes as f64 * midway) as u64
}

fn pages_of_sectors(sectors: u32) -> u64 {
    u64::from(sectors).div_ceil(PAGE_SECTORS)
}

impl RoleDirtyPages {
    /// Marks the pages of a range dirty or clean; returns the number changed.
    fn change(&mut self, sector: u64, sectors: u32, set: bool) -> u64 {
        let first = sector / PAGE_SECTORS;
        let last = (sector + u64::from(sectors.max(1)) - 1) / PAGE_SECTORS;
        self.pages.change(first, last - first + 1, set)
    }

    /// The first run of dirty pages at or after a page: first page and length.
    fn run(&self, from: u64) -> Option<(u64, u64)> {
        self.pages.run(from, LONGEST_PAGES)
    }
}

// A sparse set of pages of a large space; only chunks with pages use memory.

const BITS: u64 = u64::BITS as u64;
const WORDS: usize = 64;
const CHUNK: u64 = BITS * WORDS as u64;

/// Consecutive pages, at least one of them in the set.
#[derive(Debug)]
struct PageChunk {
    words: [u64; WORDS],
    count: u32,
}

/// A set of pages below `space`.
#[derive(Debug, Default)]
pub(crate) struct PageSet {
    space: u64,
    chunks: BTreeMap<u64, Box<PageChunk>>,
}

impl PageSet {
    /// An empty set below `space` pages.
    pub(crate) fn new(space: u64) -> Self {
        Self {
            space: space.max(1),
            chunks: BTreeMap::new(),
        }
    }

    /// Adds or removes this many pages; returns the number changed. The first page is taken modulo the space;
    /// pages beyond its end are ignored.
    pub(crate) fn change(&mut self, first: u64, pages: u64, set: bool) -> u64 {
        let first = first % self.space;
        let end = first.saturating_add(pages).min(self.space);
        let mut changed = 0;
        let mut page = first;
        while page < end {
            if !set {
                // Skip to the next chunk: nothing to remove here.
                let there = self.chunks.range(page / CHUNK..).next();
                page = there.map_or(end, |(key, _)| page.max(key * CHUNK));
            }
            let chunk_end = end.min((page / CHUNK + 1) * CHUNK);
            changed += self.change_within(page, chunk_end, set);
            page = chunk_end;
        }
        changed
    }

    /// The same within one chunk.
    fn change_within(&mut self, first: u64, end: u64, set: bool) -> u64 {
        if first >= end {
            return 0;
        }
        let key = first / CHUNK;
        let chunk = self.chunks.entry(key).or_insert_with(|| {
            Box::new(PageChunk {
                words: [0; WORDS],
                count: 0,
            })
        });
        let changed = chunk.change(first % CHUNK, end - key * CHUNK, set);
        if chunk.count == 0 {
            self.chunks.remove(&key);
        }
        changed
    }

    /// The first run of pages at or after a page, `longest` at most: its first page and its length.
    pub(crate) fn run(&self, from: u64, longest: u64) -> Option<(u64, u64)> {
        let found = self.chunks.range(from / CHUNK..).find_map(|(key, chunk)| {
            let at = chunk.first_at(from.saturating_sub(key * CHUNK))?;
            Some(key * CHUNK + at)
        })?;
        let mut length = 1;
        while length < longest && self.contains(found + length) {
            length += 1;
        }
        Some((found, length))
    }

    fn contains(&self, page: u64) -> bool {
        let chunk = self.chunks.get(&(page / CHUNK));
        chunk.is_some_and(|chunk| {
            let at = page % CHUNK;
            chunk.words[(at / BITS) as usize] >> (at % BITS) & 1 == 1
        })
    }
}

impl PageChunk {
    fn change(&mut self, first: u64, end: u64, set: bool) -> u64 {
        let mut changed = 0;
        let mut at = first;
        while at < end {
            let (word, bit) = ((at / BITS) as usize, at % BITS);
            let part = (BITS - bit).min(end - at);
            let mask = (u64::MAX >> (BITS - part)) << bit;
            let before = self.words[word];
            self.words[word] = if set { before | mask } else { before & !mask };
            changed += (before ^ self.words[word]).count_ones();
            at += part;
        }
        if set {
            self.count += changed;
        } else {
            self.count -= changed;
        }
        u64::from(changed)
    }

    /// The first page of the set at or after a page.
    fn first_at(&self, from: u64) -> Option<u64> {
        let mut word = (from / BITS) as usize;
        let mut bits = self.words.get(word)? & (u64::MAX << (from % BITS));
        while bits == 0 {
            word += 1;
            bits = *self.words.get(word)?;
        }
        Some(word as u64 * BITS + u64::from(bits.trailing_zeros()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    fn cache() -> DirtyPages {
        DirtyPages::new(1 << 30, 0, |_| 1 << 20)
    }

    #[test]
    fn pages_are_written_back_when_old_in_order_and_in_one_piece() {
        let mut cache = cache();
        cache.write(SECOND, Role::Data, 4096, 8);
        cache.write(SECOND, Role::Data, 0, 600);
        cache.write(SECOND, Role::Data, 8, 8);
        cache.begin_write_back(30 * SECOND);
        assert_eq!(cache.next_write_back(Role::Data), None);
        cache.begin_write_back(31 * SECOND);
        assert_eq!(cache.next_write_back(Role::Data), Some((0, 600)));
        assert_eq!(cache.next_write_back(Role::Data), Some((4096, 8)));
        assert_eq!(cache.next_write_back(Role::Data), None);
        assert_eq!(cache.count, 0);
    }

    #[test]
    fn what_a_sync_wrote_is_not_written_again() {
        let mut cache = cache();
        cache.write(0, Role::Temp, 0, 64);
        cache.clean(Role::Temp, 0, 32);
        cache.begin_write_back(40 * SECOND);
        assert_eq!(cache.next_write_back(Role::Temp), Some((32, 32)));
    }

    #[test]
    fn writers_are_held_back_below_a_fifth_of_memory() {
        let mut cache = cache();
        let mebibyte = 2048;
        let mut written = 0;
        while !cache.is_full() {
            cache.write(0, Role::Data, written, mebibyte as u32);
            written += mebibyte;
        }
        let share = written as f64 * 512.0 / (1u64 << 30) as f64;
        assert!((0.15..0.20).contains(&share), "{share}");
    }

    #[test]
    fn pages_stay_dirty_until_they_are_the_oldest() {
        let mut cache = DirtyPages::new(96 << 20, 48 << 20, |_| 1 << 20);
        cache.write(0, Role::Temp, 0, 90_000);
        cache.begin_write_back(SECOND);
        assert!(!cache.is_full() && cache.next_write_back(Role::Temp).is_none());
        cache.read(10_000);
        cache.begin_write_back(SECOND);
        let (_, sectors) = cache
            .next_write_back(Role::Temp)
            .expect("too much is dirty");
        cache.sent(sectors);
        cache.write(0, Role::Temp, 90_000, 10_000);
        assert!(cache.is_full(), "pages on their way still take memory");
    }

    const SPACE: u64 = 5 * CHUNK - 100;

    proptest! {
        #[test]
        fn it_is_a_set(changes in prop::collection::vec((0..2 * SPACE, 0..3 * CHUNK, any::<bool>(), 0..SPACE), 1..20)) {
            let (mut pages, mut plain) = (PageSet::new(SPACE), BTreeSet::new());
            for (first, count, set, from) in changes {
                let first = first % SPACE;
                let before = plain.len();
                for page in first..(first + count).min(SPACE) {
                    if set { plain.insert(page); } else { plain.remove(&page); }
                }
                prop_assert_eq!(pages.change(first, count, set), before.abs_diff(plain.len()) as u64);
                let found = plain.range(from..).next().copied();
                let length = |first| (0..256).take_while(|at| plain.contains(&(first + at))).count() as u64;
                prop_assert_eq!(pages.run(from, 256), found.map(|first| (first, length(first))));
            }
        }
    }

    #[test]
    fn a_space_without_end_takes_no_memory() {
        let mut pages = PageSet::new(1 << 50);
        assert_eq!(pages.change(1 << 49, 300, true), 300);
        assert_eq!(pages.run(0, 256), Some((1 << 49, 256)));
        assert_eq!(pages.change((1 << 49) - 5, 400, false), 300);
        assert!(pages.chunks.is_empty());
    }
}
