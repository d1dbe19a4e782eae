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

use tierwise_device::Nanos;
use tierwise_recording::{PAGE_BYTES, PAGE_SECTORS, Role};

use crate::page_cache::page_set::PageSet;

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
        let limit = (limit_bytes(memory_bytes) / PAGE_BYTES).max(1);
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
        self.under_way += pages(sectors);
    }

    /// Notes pages written by the device.
    pub(crate) fn written(&mut self, sectors: u32) {
        self.under_way -= pages(sectors);
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
        self.inserted += pages(sectors);
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
pub(crate) fn limit_bytes(memory_bytes: u64) -> u64 {
    let midway = (BACKGROUND_SHARE + 3.0 * LIMIT_SHARE) / 4.0;
    (memory_bytes as f64 * midway) as u64
}

fn pages(sectors: u32) -> u64 {
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

#[cfg(test)]
mod tests {
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
}
