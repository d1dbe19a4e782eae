//! A table of which most stays empty: only where something was put is memory touched.
//!
//! A device of terabytes has tables of tens of megabytes, and one that is simulated for seconds writes to little of
//! them. To clear them took half of the processor time of a prediction: an allocator that gives memory again has to,
//! and a system that gives new pages does. So the memory is asked for as a whole, for a device in use allocates
//! nothing, but taken in the order in which its parts come to be used.

use super::NOTHING;

/// Entries that are side by side in memory: a page of the system.
const CHUNK: usize = 1024;

/// A table of numbers, [`NOTHING`] at first.
#[derive(Debug)]
pub(super) struct Table {
    /// Where each part of the table is in memory, in chunks; 0: nowhere yet.
    places: Vec<u32>,
    /// The first chunk stands for all that are nowhere.
    memory: Vec<u32>,
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
        }
    }

    pub(super) fn get(&self, at: usize) -> u32 {
        self.memory[self.places[at / CHUNK] as usize * CHUNK + at % CHUNK]
    }

    pub(super) fn set(&mut self, at: usize, value: u32) {
        let place = &mut self.places[at / CHUNK];
        if *place == 0 {
            if value == NOTHING {
                return;
            }
            *place = (self.memory.len() / CHUNK) as u32;
            self.memory.resize(self.memory.len() + CHUNK, NOTHING);
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
}
