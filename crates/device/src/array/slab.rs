//! Records named by a number while they live; freed slots are used again.

use crate::driver::RESERVED;

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

// Disjoint runs of sectors in order of address; one store holds many short lists.

/// Name of no record.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Run {
    start: u64,
    end: u64,
    next: u32,
}

/// The store; a list is the name of its first run, or [`NONE`].
#[derive(Debug)]
pub(super) struct Runs(Slab<Run>);

impl Runs {
    pub(super) fn new() -> Self {
        Self(Slab::new())
    }

    /// Adds sectors to a list, joining runs that meet; returns how many were not in it.
    pub(super) fn add(&mut self, list: &mut u32, start: u64, end: u64) -> u64 {
        let added = end - start - self.overlap(*list, start, end);
        let (mut before, mut run) = (NONE, *list);
        while run != NONE && self.0[run].end < start {
            (before, run) = (run, self.0[run].next);
        }
        let mut joined = Run {
            start,
            end,
            next: run,
        };
        while run != NONE && self.0[run].start <= joined.end {
            let old = self.0.remove(run);
            joined = Run {
                start: joined.start.min(old.start),
                end: joined.end.max(old.end),
                next: old.next,
            };
            run = old.next;
        }
        let joined = self.0.insert(joined);
        match before {
            NONE => *list = joined,
            before => self.0[before].next = joined,
        }
        added
    }

    /// How many of the sectors are in the list.
    pub(super) fn overlap(&self, list: u32, start: u64, end: u64) -> u64 {
        self.iter(list)
            .map(|(from, to)| to.min(end).saturating_sub(from.max(start)))
            .sum()
    }

    /// The runs of a list.
    pub(super) fn iter(&self, list: u32) -> impl Iterator<Item = (u64, u64)> {
        let mut run = list;
        std::iter::from_fn(move || {
            (run != NONE).then(|| {
                let Run { start, end, next } = self.0[run];
                run = next;
                (start, end)
            })
        })
    }

    /// Frees a list.
    pub(super) fn free(&mut self, list: u32) {
        let mut run = list;
        while run != NONE {
            run = self.0.remove(run).next;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_list_is_a_set_of_sectors(adds in prop::collection::vec((0_u64..60, 1_u64..12), 1..40)) {
            let live = |runs: &Runs| runs.0.records.len() - runs.0.free.len();
            let mut runs = Runs::new();
            let mut list = NONE;
            let mut set = BTreeSet::new();
            for (start, length) in adds {
                let before = set.len();
                set.extend(start..start + length);
                let added = runs.add(&mut list, start, start + length);
                prop_assert_eq!(added, (set.len() - before) as u64);
                let all: Vec<_> = runs.iter(list).collect();
                prop_assert!(all.windows(2).all(|pair| pair[0].1 < pair[1].0), "{:?} meet", all);
                prop_assert_eq!(live(&runs), all.len());
                let held: BTreeSet<u64> = all.iter().flat_map(|&(from, to)| from..to).collect();
                prop_assert_eq!(&held, &set);
            }
            runs.free(list);
            prop_assert_eq!(live(&runs), 0);
        }
    }
}
