//! Records named by a number while they live; freed slots are used again.

use crate::due::RESERVED;

/// A growing store that allocates only when more records live than ever before.
#[derive(Debug)]
pub(super) struct Slab<T> {
    records: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    pub(super) fn new() -> Self {
        Self {
            records: Vec::with_capacity(RESERVED),
            free: Vec::with_capacity(RESERVED),
        }
    }

    pub(super) fn insert(&mut self, record: T) -> u32 {
        if let Some(name) = self.free.pop() {
            self.records[name as usize] = record;
            return name;
        }
        self.records.push(record);
        (self.records.len() - 1) as u32
    }

    pub(super) fn remove(&mut self, name: u32) -> T {
        self.free.push(name);
        self.records[name as usize]
    }

    /// Number of live records.
    pub(super) fn len(&self) -> usize {
        self.records.len() - self.free.len()
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, name: u32) -> &T {
        &self.records[name as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, name: u32) -> &mut T {
        &mut self.records[name as usize]
    }
}
