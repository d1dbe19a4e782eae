//! Reuse distance: how many other pages were used between two uses of a page.
//!
//! An LRU cache holds a page exactly if its capacity exceeds the number of pages used since (Mattson, Gecsei,
//! Slutz, Traiger, "Evaluation techniques for storage hierarchies", IBM Systems Journal 9(2), 1970). So one
//! pass gives the hits of every size, and a larger cache never misses a page that a smaller one holds.

use std::collections::HashMap;
use std::ops::Range;

/// Pages in the order of their last use, and the number of pages behind each.
#[derive(Debug, Default)]
pub(crate) struct LruStack {
    /// When each page was used last, by the count of uses.
    last: HashMap<u64, u32>,
    /// Fenwick tree over the uses that were the last of their page.
    tree: Vec<u32>,
    now: u32,
}

impl LruStack {
    /// Uses a page; returns the number of other pages used since its last use, if there was one.
    pub(crate) fn touch(&mut self, page: u64) -> Option<u64> {
        if self.now as usize == self.tree.len() {
            self.renumber();
        }
        let before = self.last.insert(page, self.now);
        self.add(self.now, 1);
        self.now += 1;
        let before = before?;
        self.add(before, -1);
        // All last uses after the page's previous one, without this one.
        Some(self.last.len() as u64 - 1 - u64::from(self.up_to(before)))
    }

    /// Pages that were used.
    pub(crate) fn len(&self) -> usize {
        self.last.len()
    }

    /// Removed pages occupy no cache.
    pub(crate) fn forget(&mut self, pages: Range<u64>) {
        let few = pages.end.saturating_sub(pages.start) < self.last.len() as u64;
        let gone: Vec<u64> = if few {
            pages.collect()
        } else {
            let held = self.last.keys().copied();
            held.filter(|page| pages.contains(page)).collect()
        };
        for page in gone {
            if let Some(last) = self.last.remove(&page) {
                self.add(last, -1);
            }
        }
    }

    /// Restarts the count of uses at 0, with capacity for as many more as there are pages.
    fn renumber(&mut self) {
        let mut order: Vec<(u32, u64)> = self.last.iter().map(|(page, at)| (*at, *page)).collect();
        order.sort_unstable();
        self.tree = vec![0; (2 * order.len()).max(1024)];
        self.now = 0;
        for (_, page) in order {
            self.last.insert(page, self.now);
            self.add(self.now, 1);
            self.now += 1;
        }
    }

    fn add(&mut self, at: u32, change: i32) {
        let mut index = at as usize;
        while let Some(sum) = self.tree.get_mut(index) {
            *sum = sum.wrapping_add_signed(change);
            index |= index + 1;
        }
    }

    fn up_to(&self, at: u32) -> u32 {
        let (mut index, mut sum) = (at as usize + 1, 0);
        while index > 0 {
            sum += self.tree[index - 1];
            index &= index - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reuse;
    use proptest::prelude::*;

    /// Simulates an LRU cache of this many pages; returns which uses it answers.
    fn hits(uses: &[u64], capacity: usize) -> Vec<bool> {
        let mut held: Vec<u64> = Vec::new();
        let mut answered = |page: &u64| {
            let place = held.iter().position(|other| other == page);
            if let Some(place) = place {
                held.remove(place);
            } else if held.len() == capacity {
                held.remove(0);
            }
            held.push(*page);
            place.is_some()
        };
        uses.iter().map(&mut answered).collect()
    }

    proptest! {
        #[test]
        fn distances_tell_the_hits_of_a_cache_of_every_size(
            uses in prop::collection::vec(0_u64..24, 1..300),
        ) {
            let mut stack = LruStack::default();
            let distances: Vec<Option<u64>> = uses.iter().map(|page| stack.touch(*page)).collect();
            for capacity in 1..26 {
                let found = distances.iter().map(|other| other.is_some_and(|pages| pages < capacity));
                prop_assert_eq!(found.collect::<Vec<_>>(), hits(&uses, capacity as usize));
            }
        }

        #[test]
        fn a_class_is_no_more_than_its_pages_and_close_to_them(pages in 0_u64..1 << 30) {
            let least = Reuse::after(pages).pages().expect("a known class");
            prop_assert!(least <= pages);
            prop_assert!((pages + 1) as f64 <= (least + 1) as f64 * 1.1, "{} for {}", least, pages);
            prop_assert!(Reuse::after(pages) <= Reuse::after(pages + 1));
        }
    }

    #[test]
    fn pages_that_are_gone_take_no_room_and_uses_are_counted_anew() {
        let mut stack = LruStack::default();
        for page in 0..3000 {
            stack.touch(page);
        }
        stack.forget(1000..2500);
        stack.forget(5000..u64::MAX);
        assert_eq!(stack.touch(0), Some(1499));
        assert_eq!(stack.touch(0), Some(0));
        assert_eq!(stack.touch(1000), None);
    }
}
