//! Erase blocks by how many of their units are valid, so that the emptiest is found at once.

use std::ops::Range;
use std::sync::Arc;

use crate::random::GOLDEN_GAMMA;

const NONE: u32 = u32::MAX;

/// Valid counts of all blocks, and the sealed ones in a list for each count.
#[derive(Clone, Debug)]
pub(super) struct EraseBlocks {
    valid: Vec<u32>,
    sealed: Vec<bool>,
    next: Vec<u32>,
    previous: Vec<u32>,
    /// First block of the list of each count.
    heads: Vec<u32>,
    /// No sealed block has fewer valid units.
    least: usize,
}

impl EraseBlocks {
    /// `count` empty blocks of `units` each, none sealed.
    pub(super) fn new(count: usize, units: usize) -> Self {
        Self {
            valid: vec![0; count],
            sealed: vec![false; count],
            next: vec![NONE; count],
            previous: vec![NONE; count],
            heads: vec![NONE; units + 1],
            least: units,
        }
    }

    /// Valid units of each sealed block.
    pub(super) fn sealed_counts(&self) -> impl Iterator<Item = u32> {
        let blocks = self.valid.iter().zip(&self.sealed);
        blocks
            .filter(|(_, sealed)| **sealed)
            .map(|(&valid, _)| valid)
    }

    /// Valid units of every block.
    #[cfg(test)]
    pub(super) fn valid_counts(&self) -> &Vec<u32> {
        &self.valid
    }

    /// Counts a unit written to an open block.
    pub(super) fn validate(&mut self, block: u32) {
        self.valid[block as usize] += 1;
    }

    /// Counts a unit of a block that is valid no more.
    pub(super) fn invalidate(&mut self, block: u32) {
        if !self.sealed[block as usize] {
            self.valid[block as usize] -= 1;
            return;
        }
        self.unlink(block);
        self.valid[block as usize] -= 1;
        self.link(block);
    }

    /// Makes a full block one that cleaning may choose.
    pub(super) fn seal(&mut self, block: u32) {
        self.sealed[block as usize] = true;
        self.link(block);
    }

    /// Takes the sealed block with the fewest valid units, and their number.
    ///
    /// # Panics
    /// If no block is sealed.
    pub(super) fn take_emptiest(&mut self) -> (u32, u32) {
        while self.heads[self.least] == NONE {
            self.least += 1;
        }
        let block = self.heads[self.least];
        self.unlink(block);
        self.sealed[block as usize] = false;
        (block, self.least as u32)
    }

    fn link(&mut self, block: u32) {
        let count = self.valid[block as usize] as usize;
        let head = self.heads[count];
        self.next[block as usize] = head;
        self.previous[block as usize] = NONE;
        if head != NONE {
            self.previous[head as usize] = block;
        }
        self.heads[count] = block;
        self.least = self.least.min(count);
    }

    fn unlink(&mut self, block: u32) {
        let (next, previous) = (self.next[block as usize], self.previous[block as usize]);
        if next != NONE {
            self.previous[next as usize] = previous;
        }
        if previous == NONE {
            self.heads[self.valid[block as usize] as usize] = next;
        } else {
            self.next[previous as usize] = next;
        }
    }
}

// A sparse table: it touches memory only where something was stored.
//
// A device of terabytes has tables of tens of megabytes, and a simulation of seconds writes to little of
// them. Clearing them took half of the processor time of a prediction, in the allocator for reused memory or
// in the system for new pages. So the table allocates its memory as a whole, since a device in use allocates
// nothing, but uses it in the order in which its parts are first written.

/// The content of a slot filled with padding, and of a unit that was not written.
pub(super) const NOTHING: u32 = 0;
/// Entries that are side by side in memory: a page of the system.
const CHUNK: usize = 1024;

/// A table of numbers, [`NOTHING`] at first.
#[derive(Debug)]
pub(super) struct NumberTable {
    /// Where each part of the table is in memory, in chunks; 0: not allocated yet.
    places: Vec<u32>,
    /// The first chunk stands for all parts that are not allocated.
    memory: Vec<u32>,
    /// Numbers of the parts that are not allocated yet; all [`NOTHING`] if there are none. Copies share it.
    base: Option<Arc<[u32]>>,
}

/// With capacity for all parts, so that a copy in use allocates nothing.
impl Clone for NumberTable {
    fn clone(&self) -> Self {
        let mut memory = Vec::with_capacity((self.places.len() + 1) * CHUNK);
        memory.extend_from_slice(&self.memory);
        Self {
            places: self.places.clone(),
            memory,
            base: self.base.clone(),
        }
    }
}

impl NumberTable {
    /// An empty one.
    pub(super) fn new(entries: usize) -> Self {
        let chunks = entries.div_ceil(CHUNK);
        let mut memory = Vec::with_capacity((chunks + 1) * CHUNK);
        memory.resize(CHUNK, NOTHING);
        Self {
            places: vec![0; chunks],
            memory,
            base: None,
        }
    }

    /// The same numbers, shared by all copies of it.
    pub(super) fn shared(self) -> Self {
        let numbers = 0..self.places.len() * CHUNK;
        Self {
            base: Some(numbers.map(|at| self.get(at)).collect()),
            ..Self::new(self.places.len() * CHUNK)
        }
    }

    pub(super) fn get(&self, at: usize) -> u32 {
        match (self.places[at / CHUNK], &self.base) {
            (0, Some(base)) => base[at],
            (place, _) => self.memory[place as usize * CHUNK + at % CHUNK],
        }
    }

    pub(super) fn set(&mut self, at: usize, value: u32) {
        let place = &mut self.places[at / CHUNK];
        if *place == 0 {
            if value == NOTHING && self.base.is_none() {
                return;
            }
            *place = (self.memory.len() / CHUNK) as u32;
            match &self.base {
                Some(base) => {
                    let first = at / CHUNK * CHUNK;
                    self.memory.extend_from_slice(&base[first..first + CHUNK]);
                }
                None => self.memory.resize(self.memory.len() + CHUNK, NOTHING),
            }
        }
        self.memory[*place as usize * CHUNK + at % CHUNK] = value;
    }
}

// Which mapping units are tracked: all of a small device, an evenly spread share of a large one.
//
// Of every 2^k consecutive units one is tracked, at a place in its group that a hash of the group's number
// gives: spatial sampling as by SHARDS (Waldspurger et al., FAST 2015), stratified so that ranges of units
// are ranges of tracked ones. What is tracked lives in proportionally smaller blocks.

/// Most units tracked: 8 MiB of map.
const MOST_TRACKED: u64 = 1 << 21;

/// The choice of tracked units.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrackedUnits {
    shift: u32,
    tracked: u64,
}

impl TrackedUnits {
    /// A choice among `units`.
    pub(super) fn of(units: u64) -> Self {
        let mut shift = 0;
        while units >> shift > MOST_TRACKED {
            shift += 1;
        }
        Self {
            shift,
            tracked: units >> shift,
        }
    }

    /// How many units are tracked.
    pub(super) fn tracked(self) -> u64 {
        self.tracked
    }

    /// Units that each tracked one stands for.
    pub(super) fn units_per_tracked(self) -> u64 {
        1 << self.shift
    }

    /// The tracked units among `units`, by their index.
    pub(super) fn within(self, units: Range<u64>) -> Range<u64> {
        let from = self.first_at_or_after(units.start);
        from..self.first_at_or_after(units.end).max(from)
    }

    /// The index of the first tracked unit that is not before `unit`.
    fn first_at_or_after(self, unit: u64) -> u64 {
        let group = unit >> self.shift;
        let offset = unit & (self.units_per_tracked() - 1);
        (group + u64::from(offset > self.place(group))).min(self.tracked)
    }

    /// Where in its group the tracked unit lies.
    fn place(self, group: u64) -> u64 {
        let hash = group.wrapping_mul(GOLDEN_GAMMA);
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 40;
        hash & (self.units_per_tracked() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_was_put_there_and_touches_no_more_memory() {
        let mut table = NumberTable::new(10 * CHUNK + 1);
        let at_first = table.memory.as_ptr();
        table.set(10 * CHUNK, 8);
        table.set(3 * CHUNK, 7);
        table.set(5 * CHUNK, NOTHING);
        assert_eq!((table.get(3 * CHUNK), table.get(10 * CHUNK)), (7, 8));
        assert_eq!((table.get(0), table.get(3 * CHUNK + 1)), (NOTHING, NOTHING));
        assert_eq!(table.memory.len(), 3 * CHUNK);
        table.set(3 * CHUNK, NOTHING);
        assert_eq!(table.get(3 * CHUNK), NOTHING);
        (0..10).for_each(|chunk| table.set(chunk * CHUNK, 1));
        assert_eq!(table.memory.as_ptr(), at_first, "it allocates nothing");
    }

    #[test]
    fn copies_of_a_shared_table_change_apart() {
        let mut table = NumberTable::new(3 * CHUNK);
        table.set(5, 8);
        let shared = table.shared();
        let mut copy = shared.clone();
        let at_first = copy.memory.as_ptr();
        copy.set(5, NOTHING);
        copy.set(6, 9);
        copy.set(2 * CHUNK, 7);
        assert_eq!((copy.get(5), copy.get(6), copy.get(2 * CHUNK)), (0, 9, 7));
        assert_eq!((shared.get(5), shared.get(6)), (8, NOTHING));
        assert_eq!(copy.memory.as_ptr(), at_first, "it allocates nothing");
    }
}
