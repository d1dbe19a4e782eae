//! Hits and misses of the page cache with another size of memory.
//!
//! The engine keeps its own buffer, so its calls stay the same; the difference goes to the page cache, which evicts
//! the least recently used pages. A larger cache answers all reads that the recorded one did, a smaller one no
//! others. In memory as recorded, the recorded share of misses holds.

use std::cmp::Ordering;

use tierwise_device::Nanos;
use tierwise_work::Reuse;

use crate::api::scenario::{MissAssumption, Scenario};
use crate::program::Program;

const PAGE_BYTES: u64 = 4096;
/// Sectors of a page.
const SECTORS: u64 = 8;

/// Decides which recorded reads the page cache answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheHits {
    /// Size over the recorded one.
    change: Ordering,
    /// Its size in pages.
    pages: u64,
    /// Whether reads of unknown reuse distance are hits.
    unknown: bool,
    /// Whether it became larger and holds all files, so that nothing is read twice.
    holds_all: bool,
    /// Misses although it holds all files, and their recorded rate.
    misses: u64,
    recorded_per_ns: f64,
}

impl CacheHits {
    pub(crate) fn new(program: &Program, scenario: &Scenario) -> Self {
        let recorded = program.work.memory_bytes;
        let asked = scenario.memory_bytes.unwrap_or(recorded);
        let cache = &program.work.page_cache;
        let change = asked.cmp(&recorded);
        let (held, unknown) = match scenario.misses {
            MissAssumption::Likely => (cache.likely_bytes, change == Ordering::Less),
            MissAssumption::Fewest => (cache.most_bytes, true),
            MissAssumption::Most => (cache.least_bytes, false),
        };
        let pages = held.saturating_add(asked).saturating_sub(recorded) / PAGE_BYTES;
        let footprints = program.work.footprints.iter();
        let used: u64 = footprints.map(|used| used.1 / SECTORS).sum();
        Self {
            change,
            pages,
            unknown,
            holds_all: change == Ordering::Greater && used <= pages,
            misses: 0,
            recorded_per_ns: program.reads_per_ns(),
        }
    }

    /// Whether a read is a hit that was recorded as one (`recorded`), or not.
    pub(crate) fn is_hit(&self, recorded: bool, reuse: Reuse) -> bool {
        let pages = reuse.pages();
        let held = pages.map_or(self.unknown, |pages| pages < self.pages);
        match self.change {
            Ordering::Equal => recorded,
            Ordering::Greater => recorded || held,
            Ordering::Less => recorded && held,
        }
    }

    /// Whether a recorded miss is a hit because memory holds all files. Pages are then read the first time, or after a
    /// process outside this work evicted them. Evictions follow time, not work: `repeated` sessions read these pages
    /// at no more than the recorded rate.
    pub(crate) fn is_in_memory(&mut self, now: Nanos, repeated: bool) -> bool {
        if !self.holds_all {
            return false;
        }
        let due = now as f64 * self.recorded_per_ns;
        let hit = repeated && self.misses as f64 >= due;
        self.misses += u64::from(!hit);
        hit
    }
}
