//! Hits and misses of the page cache with another size of memory.
//!
//! The engine keeps its own buffer, so its calls stay the same; the difference goes to the page cache, which evicts
//! the least recently used pages. A larger cache answers all reads that the recorded one did, a smaller one no
//! others.

use tierwise_work::Reuse;

use crate::api::scenario::{MissAssumption, Scenario};
use crate::program::prepared::Program;

const PAGE_BYTES: u64 = 4096;
/// Sectors of a page.
const SECTORS: u64 = 8;

/// Decides which recorded reads the page cache answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheHits {
    /// Whether it is larger or smaller than recorded, if it differs.
    change: Option<Change>,
    /// Its size in pages.
    pages: u64,
    /// Whether reads of unknown reuse distance are hits.
    unknown: bool,
    /// Whether it became larger and holds all files, so that nothing is read twice. In memory as recorded, the
    /// recorded share of misses holds.
    holds_all: bool,
    /// Misses although it holds all files.
    pub(crate) misses: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    More,
    Less,
}

impl CacheHits {
    pub(crate) fn new(program: &Program, scenario: &Scenario) -> Self {
        let recorded = program.work.memory_bytes;
        let asked = scenario.memory_bytes.unwrap_or(recorded);
        let cache = &program.work.page_cache;
        let held = match scenario.misses {
            MissAssumption::Likely => cache.likely_bytes,
            MissAssumption::Fewest => cache.most_bytes,
            MissAssumption::Most => cache.least_bytes,
        };
        let change = match asked.cmp(&recorded) {
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(Change::More),
            std::cmp::Ordering::Less => Some(Change::Less),
        };
        let pages = (held.saturating_add(asked)).saturating_sub(recorded) / PAGE_BYTES;
        let footprints = program.work.footprints.iter();
        let used: u64 = footprints.map(|used| used.1 / SECTORS).sum();
        Self {
            change,
            pages,
            holds_all: change == Some(Change::More) && used <= pages,
            misses: 0,
            unknown: match scenario.misses {
                MissAssumption::Likely => change == Some(Change::Less),
                MissAssumption::Fewest => true,
                MissAssumption::Most => false,
            },
        }
    }

    /// Whether it became larger and holds all files.
    pub(crate) fn holds_all(&self) -> bool {
        self.holds_all
    }

    /// Whether a read is a hit that was recorded as one (`found`), or not.
    pub(crate) fn is_hit(&self, found: bool, reuse: Reuse) -> bool {
        let held = || {
            reuse
                .pages()
                .map_or(self.unknown, |pages| pages < self.pages)
        };
        match self.change {
            None => found,
            Some(Change::More) => found || held(),
            Some(Change::Less) => found && held(),
        }
    }
}
