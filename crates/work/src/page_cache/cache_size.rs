//! Size of the page cache, inferred from its hits and misses.

use serde::Serialize;
use tierwise_recording::About;

use crate::constants::{CACHE_SIZE_TOLERANCE_SHARE, CACHE_SURE_SHARE};
use crate::index::sizes::PAGE_BYTES;
use crate::page_cache::reuse::Reuse;

const CLASSES: usize = 256;

/// Reads of pages by their reuse.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    found: [u64; CLASSES],
    missed: [u64; CLASSES],
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            found: [0; CLASSES],
            missed: [0; CLASSES],
        }
    }
}

impl Counts {
    pub(crate) fn count(&mut self, reuse: Reuse, missed: bool) {
        let counts = if missed {
            &mut self.missed
        } else {
            &mut self.found
        };
        counts[reuse.class()] += 1;
    }

    /// Reads that a cache of each class's size would have answered differently.
    fn contradictions(&self) -> [u64; CLASSES] {
        let mut wrong = [0; CLASSES];
        let mut count: u64 = self.found[1..].iter().sum();
        let classes = self.found.iter().zip(&self.missed);
        for (wrong, (found, missed)) in wrong.iter_mut().zip(classes).skip(1) {
            *wrong = count;
            count = count - found + missed;
        }
        wrong
    }
}

/// The page cache as a recording shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PageCache {
    /// Its smallest possible size.
    pub least_bytes: u64,
    /// Its most likely size.
    pub likely_bytes: u64,
    /// Its largest possible size.
    pub most_bytes: u64,
    /// Share of the reads of previously used pages that no LRU size explains: the difference of a cache that
    /// does not always evict the least recently used page.
    pub unexplained: f64,
    /// The engine's own buffer, by its settings; it is not part of the page cache.
    pub engine_bytes: u64,
    /// Whether the engine reads its files past the page cache, so that only its own buffer answers.
    pub passed: bool,
    /// Whether caches were empty at the start and the recording has no gap since, so that first uses are
    /// known.
    pub cold: bool,
    /// Why the recording cannot tell which reads another size would answer, if it cannot.
    pub reason: Option<String>,
}

impl PageCache {
    /// `engine_bytes`: the engine's own buffer.
    pub(crate) fn new(
        about: &About,
        engine_bytes: u64,
        counts: &Counts,
        reason: Option<String>,
    ) -> Self {
        let memory = about.machine.memory_bytes;
        let wrong = counts.contradictions();
        let best = wrong[1..].iter().copied().min().unwrap_or(0);
        let missed: u64 = counts.missed.iter().sum();
        let found: u64 = counts.found.iter().sum();
        let enough = best + (missed as f64 * CACHE_SIZE_TOLERANCE_SHARE.get()) as u64;
        let fits = |class: &usize| wrong[*class] <= enough;
        let bytes = |class: Option<usize>| {
            let pages = class.map_or(0, |class| Reuse::of_class(class).pages().unwrap_or(0));
            pages.saturating_mul(PAGE_BYTES).min(memory)
        };
        let (left, sure) = left(about, engine_bytes);
        let least = bytes((1..CLASSES).find(fits));
        let most = bytes((1..CLASSES).rev().find(fits)).max(least);
        let least = least.max(sure.min(most));
        Self {
            least_bytes: least,
            likely_bytes: left.clamp(least, most),
            most_bytes: most,
            unexplained: best as f64 / (found + missed).max(1) as f64,
            engine_bytes,
            passed: false,
            cold: false,
            reason,
        }
    }
}

/// Memory available for pages of files, and the part of it that is certain: some memory of processes may have
/// been missed.
fn left(about: &About, engine_bytes: u64) -> (u64, u64) {
    let machine = &about.machine;
    match machine.processes_bytes {
        0 => (machine.memory_bytes.saturating_sub(engine_bytes), 0),
        held => {
            let left = machine.memory_bytes.saturating_sub(held);
            (left, (left as f64 * CACHE_SURE_SHARE.get()) as u64)
        }
    }
}
