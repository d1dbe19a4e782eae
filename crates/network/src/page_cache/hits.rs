//! Hits and misses of the page cache and of the engine's buffer with other sizes of them.
//!
//! The page cache evicts the least recently used pages. A larger one answers all reads that the recorded one did, a
//! smaller one no others. With the sizes as recorded, the recorded share of misses holds. The engine's buffer can
//! become larger: calls that it answers then do not take place. Both share the machine's memory.
//!
//! Reads of unknown reuse distance are answered with the chance that the curve of distances gives them.

use std::cmp::Ordering;

use tierwise_device::Nanos;
use tierwise_recording::{PAGE_BYTES, PAGE_SECTORS};
use tierwise_work::{ReuseCurve, ReuseDistanceClass, UnobservedReads};

use crate::api::scenario::{MissAssumption, Scenario};
use crate::program::Program;

/// Decides which recorded reads the page cache answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheHits {
    /// The engine's buffer, if it is larger than recorded.
    pub(crate) buffer: Option<BufferHits>,
    /// Size over the recorded one.
    change: Ordering,
    /// Its size in pages.
    pages: u64,
    /// Share of the reads of unknown reuse distance that are answered: of recorded hits with a smaller cache, of
    /// recorded misses with a larger one.
    unknown: f64,
    /// Whether it became larger and holds all files, so that nothing is read twice.
    holds_all: bool,
    /// Misses although it holds all files, and their recorded rate.
    misses: u64,
    recorded_per_ns: f64,
}

/// Decides which recorded calls a larger buffer of the engine makes superfluous.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferHits {
    /// A page read again after fewer other pages is still there.
    pages: f64,
    /// Share of the reads of unknown reuse distance that are answered.
    unknown: f64,
}

impl BufferHits {
    fn new(program: &Program, scenario: &Scenario) -> Option<Self> {
        let recorded = program.work.page_cache.engine_bytes / PAGE_BYTES;
        let asked = scenario.buffer_bytes? / PAGE_BYTES;
        let curve = &program.work.buffer_reuse;
        let pages = reuse_distance_reached(curve, recorded, asked, scenario.misses);
        (asked > recorded).then(|| Self {
            pages,
            unknown: curve.unknown_within(pages, 0.0, unobserved_share(scenario.misses)),
        })
    }

    pub(crate) fn is_hit(&self, reuse: ReuseDistanceClass, draw: impl FnOnce() -> f64) -> bool {
        match reuse.pages() {
            Some(pages) => (pages as f64) < self.pages,
            None => draw() < self.unknown,
        }
    }
}

/// The reuse distance up to which a buffer of `asked` pages answers calls that one of `recorded` pages let through.
///
/// Calls show when a page comes into the buffer, not when it leaves. The shortest recorded distance is what the
/// recorded buffer held of the pages that pass through it; all pages are what one of their number holds. Between
/// the two it is taken to rise in a straight line. Where no reuse was recorded, such a page is assumed to stay for
/// as many others as the buffer has pages, which is its mean stay (Little, Operations Research 9(3), 1961); bounds
/// are none of them, and all.
fn reuse_distance_reached(
    curve: &ReuseCurve,
    recorded: u64,
    asked: u64,
    misses: MissAssumption,
) -> f64 {
    let (recorded, asked, all) = (recorded as f64, asked as f64, curve.pages as f64);
    if asked >= all {
        return f64::INFINITY;
    }
    let observed = curve.shortest_pages().map(|pages| pages as f64);
    let stays = match (observed, misses) {
        (Some(observed), _) => observed.min(recorded),
        (None, MissAssumption::Most) => 0.0,
        (None, _) => recorded,
    };
    stays + (asked - recorded) * (all - stays) / (all - recorded)
}

fn unobserved_share(misses: MissAssumption) -> UnobservedReads {
    match misses {
        MissAssumption::Likely => UnobservedReads::Even,
        MissAssumption::Fewest => UnobservedReads::Near,
        MissAssumption::Most => UnobservedReads::Far,
    }
}

impl CacheHits {
    pub(crate) fn new(program: &Program, scenario: &Scenario) -> Self {
        let work = &program.work;
        let recorded = work
            .memory_bytes
            .saturating_sub(work.page_cache.engine_bytes);
        let asked = scenario.memory_bytes.unwrap_or(work.memory_bytes);
        let buffer = scenario
            .buffer_bytes
            .unwrap_or(work.page_cache.engine_bytes);
        let asked = asked.saturating_sub(buffer);
        let cache = &work.page_cache;
        let change = asked.cmp(&recorded);
        let held = match scenario.misses {
            MissAssumption::Likely => cache.likely_bytes,
            MissAssumption::Fewest => cache.most_bytes,
            MissAssumption::Most => cache.least_bytes,
        };
        let pages = held.saturating_add(asked).saturating_sub(recorded) / PAGE_BYTES;
        let footprints = work.footprints.iter();
        let used: u64 = footprints.map(|used| used.1 / PAGE_SECTORS).sum();
        Self {
            buffer: BufferHits::new(program, scenario),
            change,
            pages,
            unknown: unknown_hits(
                &work.cache_reuse,
                change,
                held / PAGE_BYTES,
                pages,
                scenario.misses,
            ),
            holds_all: change == Ordering::Greater && used <= pages,
            misses: 0,
            recorded_per_ns: program.reads_per_ns(),
        }
    }

    /// Whether a read is a hit that was recorded as one (`recorded`), or not; `draw` decides on unknown distances.
    pub(crate) fn is_hit(
        &self,
        recorded: bool,
        reuse: ReuseDistanceClass,
        draw: impl FnOnce() -> f64,
    ) -> bool {
        let held = || match reuse.pages() {
            Some(pages) => pages < self.pages,
            None => draw() < self.unknown,
        };
        match self.change {
            Ordering::Equal => recorded,
            Ordering::Greater => recorded || held(),
            Ordering::Less => recorded && held(),
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

/// The share of the reads of unknown reuse that a cache of other `pages` than recorded answers: of recorded misses if
/// it is larger, of recorded hits if it is smaller.
fn unknown_hits(
    curve: &ReuseCurve,
    change: Ordering,
    recorded: u64,
    pages: u64,
    misses: MissAssumption,
) -> f64 {
    let (recorded, pages) = (recorded as f64, pages as f64);
    match change {
        Ordering::Equal => 0.0,
        Ordering::Greater => curve.unknown_within(pages, recorded, unobserved_share(misses)),
        Ordering::Less => {
            let within = |pages| curve.unknown_within(pages, 0.0, unobserved_share(misses));
            let all = within(recorded);
            if all > 0.0 { within(pages) / all } else { 1.0 }
        }
    }
}
