//! Reads under another size of memory: which the page cache answers that it did not, and the other way round.
//!
//! The engine keeps its own buffer, so its calls stay the same; what is more or less goes to the page cache, which
//! drops what was not used for longest. Only what changes is decided here: a larger cache answers all that the
//! recorded one did, a smaller one nothing else.

use tierwise_work::Reuse;

use crate::api::scenario::{MissAssumption, Scenario};
use crate::program::prepared::Program;

const PAGE_BYTES: u64 = 4096;
/// Sectors of a page.
const SECTORS: u64 = 8;

/// Which recorded reads the page cache answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheHits {
    /// Whether it is larger or smaller than recorded, if it is another.
    change: Option<Change>,
    /// Pages that it holds.
    pages: u64,
    /// Whether it answers reads of unknown reuse.
    unknown: bool,
    /// Whether it holds all files: what was read once is never read again.
    holds_all: bool,
    /// Reads that it did not answer although it does.
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
            holds_all: used <= pages,
            misses: 0,
            unknown: match scenario.misses {
                MissAssumption::Likely => change == Some(Change::Less),
                MissAssumption::Fewest => true,
                MissAssumption::Most => false,
            },
        }
    }

    /// Whether what was read once stays.
    pub(crate) fn holds_all(&self) -> bool {
        self.holds_all
    }

    /// Whether a read that was recorded as found, or else as not, is answered.
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
