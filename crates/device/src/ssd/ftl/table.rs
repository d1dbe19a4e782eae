//! A sparse table: it touches memory only where something was stored.
//!
//! A device of terabytes has tables of tens of megabytes, and a simulation of seconds writes to little of
//! them. Clearing them took half of the processor time of a prediction, in the allocator for reused memory or
//! in the system for new pages. So the table allocates its memory as a whole, since a device in use allocates
//! nothing, but uses it in the order in which its parts are first written.

use std::sync::Arc;

/// The content of a slot filled with padding, and of a unit that was not written.
pub(super) const NOTHING: u32 = 0;
/// Entries that are side by side in memory: a page of the system.
const CHUNK: usize = 1024;

/// A table of numbers, [`NOTHING`] at first.
#[derive(Debug)]
pub(super) struct Table {
    /// Where each part of the table is in memory, in chunks; 0: not allocated yet.
    places: Vec<u32>,
    /// The first chunk stands for all parts that are not allocated.
    memory: Vec<u32>,
    /// Numbers of the parts that are not allocated yet; all [`NOTHING`] if there are none. Copies share it.
    base: Option<Arc<[u32]>>,
}

/// With capacity for all parts, so that a copy in use allocates nothing.
impl Clone for Table {
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

impl Table {
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
    pub(super) fn shared(&self) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_was_put_there_and_touches_no_more_memory() {
        let mut table = Table::new(10 * CHUNK + 1);
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
        let mut table = Table::new(3 * CHUNK);
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
