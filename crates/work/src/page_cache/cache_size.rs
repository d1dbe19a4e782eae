//! How much the page cache held, as what it answered tells.

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

    /// Reads that a cache that holds what is below each class would have answered otherwise.
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

/// What a recording tells of the page cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PageCache {
    /// The least that it may have held.
    pub least_bytes: u64,
    /// What it held most likely.
    pub likely_bytes: u64,
    /// The most.
    pub most_bytes: u64,
    /// Share of the reads of pages used before that no such size explains: what a cache that does not always drop
    /// what was unused for longest did otherwise.
    pub unexplained: f64,
    /// The engine's own buffer, as its settings say; it is not part of the page cache.
    pub engine_bytes: u64,
    /// Whether the engine reads its files past the page cache, so that its own buffer alone answers.
    pub passed: bool,
    /// Whether caches were empty at the start and all was recorded from there, so that first uses are known.
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

/// What memory there was for pages of files, and how much of that is sure: of what processes held themselves
/// something may have been missed.
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
