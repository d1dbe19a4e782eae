//! Space in the write cache: sectors that came in and are not on the flash yet.

use std::collections::VecDeque;

use crate::Nanos;

/// Entries reserved at the start; a larger cache grows as needed in the first requests.
const RESERVED: usize = 4096;

/// The write cache by number of sectors; it holds no data.
#[derive(Debug)]
pub(super) struct Buffer {
    capacity_sectors: u64,
    held_sectors: u64,
    /// When each part is on the flash, and its sectors, in order of arrival.
    leaving: VecDeque<(Nanos, u64)>,
    programmed: Nanos,
}

impl Buffer {
    pub(super) fn new(capacity_sectors: u64) -> Self {
        Self {
            capacity_sectors,
            held_sectors: 0,
            leaving: VecDeque::with_capacity(RESERVED),
            programmed: 0,
        }
    }

    /// The time at which `sectors` fit; at once if there is no cache.
    pub(super) fn make_room(&mut self, now: Nanos, sectors: u64) -> Nanos {
        let mut at = now;
        while let Some(&(programmed, held)) = self.leaving.front() {
            let full = self.held_sectors + sectors > self.capacity_sectors;
            if programmed > now && !full {
                break;
            }
            at = at.max(programmed);
            self.held_sectors -= held;
            self.leaving.pop_front();
        }
        at
    }

    /// Holds `sectors` that wait for their page to fill.
    pub(super) fn gather(&mut self, sectors: u64) {
        self.held_sectors += sectors;
    }

    /// Lets `sectors`, gathered before, leave when they are programmed.
    pub(super) fn leave(&mut self, sectors: u64, programmed: Nanos) {
        self.programmed = self.programmed.max(programmed);
        if self.capacity_sectors == 0 {
            self.held_sectors -= sectors;
        } else {
            self.leaving.push_back((programmed, sectors));
        }
    }

    /// When every queued program is done.
    pub(super) fn programmed(&self) -> Nanos {
        self.programmed
    }
}
