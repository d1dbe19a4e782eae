//! Observes the reuse of pages, for the curve of reuse distances.
//!
//! A page that is not used again before a burst ends has a reuse distance of at least the pages used since: it
//! is censored. The share of reads beyond a distance follows by the product-limit estimator (Kaplan and Meier,
//! "Nonparametric estimation from incomplete observations", Journal of the American Statistical Association
//! 53(282), 1958). Assumption: what bursts leave out is as what they show.

use std::collections::HashMap;
use std::ops::Range;

use crate::page_cache::CLASSES;
use crate::{ReuseCurve, ReuseDistanceClass};

/// Fewest pages that must be under observation at a distance for the curve to reach it.
const LEAST_OBSERVED: u64 = 100;

/// The pages used by one stream of accesses, and their reuse so far.
#[derive(Debug)]
pub(crate) struct ReuseObserver {
    stack: LruStack,
    /// Pages used again, by distance, and pages not used again up to a gap or the end.
    events: [u64; CLASSES],
    censored: [u64; CLASSES],
    unknown: [u64; CLASSES],
}

impl Default for ReuseObserver {
    fn default() -> Self {
        Self {
            stack: LruStack::default(),
            events: [0; CLASSES],
            censored: [0; CLASSES],
            unknown: [0; CLASSES],
        }
    }
}

impl ReuseObserver {
    /// Uses a page; its reuse, if it was used before.
    pub(crate) fn touch(&mut self, page: u64) -> Option<ReuseDistanceClass> {
        let reuse = ReuseDistanceClass::after(self.stack.touch(page)?);
        self.events[usize::from(reuse.class())] += 1;
        Some(reuse)
    }

    /// Reads pages; returns the longest reuse of those used before, unless most are new, and the number of new pages.
    /// `each` is told the reuse of every page used before.
    pub(crate) fn read(
        &mut self,
        pages: Range<u64>,
        mut each: impl FnMut(ReuseDistanceClass),
    ) -> (ReuseDistanceClass, u64) {
        let (mut longest, mut known, mut first) = (ReuseDistanceClass::UNKNOWN, 0, 0);
        for page in pages {
            if let Some(reuse) = self.touch(page) {
                each(reuse);
                longest = longest.max(reuse);
                known += 1;
            } else {
                first += 1;
            }
        }
        if first > known {
            let least = ReuseDistanceClass::after(self.stack.len().saturating_sub(1) as u64);
            self.unknown[usize::from(least.class())] += 1;
            longest = ReuseDistanceClass::UNKNOWN;
        }
        (longest, first)
    }

    pub(crate) fn forget(&mut self, pages: Range<u64>) {
        self.stack.forget(pages);
    }

    /// Ends a span: what happens before the next is not known.
    pub(crate) fn end_span(&mut self) {
        for others in 0..self.stack.len() as u64 {
            self.censored[usize::from(ReuseDistanceClass::after(others).class())] += 1;
        }
        self.stack = LruStack::default();
    }

    /// The curve, of files with this many pages in all.
    pub(crate) fn curve(&self, pages: u64) -> ReuseCurve {
        let mut observed: u64 = self.events.iter().chain(&self.censored).sum();
        let mut share = 1.0;
        // Class 0 has no pages.
        let mut beyond = vec![1.0];
        for class in 1..CLASSES - 1 {
            beyond.push(share);
            if observed < LEAST_OBSERVED {
                break;
            }
            share *= 1.0 - self.events[class] as f64 / observed as f64;
            observed -= self.events[class] + self.censored[class];
        }
        let unknown = self.unknown.iter().zip(0..=u8::MAX);
        let unknown = unknown.filter(|(count, _)| **count > 0);
        ReuseCurve {
            beyond,
            unknown: unknown
                .map(|(count, class)| (ReuseDistanceClass::of_class(class), *count))
                .collect(),
            pages,
        }
    }
}

// Reuse distance: how many other pages were used between two uses of a page.
//
// An LRU cache holds a page exactly if its capacity exceeds the number of pages used since (Mattson, Gecsei,
// Slutz, Traiger, "Evaluation techniques for storage hierarchies", IBM Systems Journal 9(2), 1970). So one
// pass gives the hits of every size, and a larger cache never misses a page that a smaller one holds.

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
        Some(self.last.len() as u64 - 1 - u64::from(self.prefix_sum(before)))
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

    fn prefix_sum(&self, at: u32) -> u32 {
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
    use proptest::prelude::*;

    use super::*;
    use crate::{ReuseDistanceClass, UnobservedReads};

    /// Uses pages at random, in spans of this length.
    fn observed(pages: usize, spans: usize, uses: usize, seed: u64) -> ReuseCurve {
        let mut random = seed | 1;
        let mut below = |limit: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % limit as u64
        };
        let mut observer = ReuseObserver::default();
        for _ in 0..spans {
            for _ in 0..uses {
                let page = below(pages);
                observer.read(page..page + 1, |_| ());
            }
            observer.end_span();
        }
        observer.curve(pages as u64)
    }

    #[test]
    fn spans_far_shorter_than_a_reuse_give_the_curve_of_pages_that_are_equally_likely() {
        for uses in [300, 3000, 30_000] {
            let curve = observed(10_000, 200, uses, 7);
            for pages in [100.0, 1000.0, 2500.0, 5000.0, 9000.0] {
                let share = curve.beyond(pages, UnobservedReads::Even);
                assert!(
                    (share - (1.0 - pages / 10_000.0)).abs() < 0.03,
                    "{uses} {pages}: {share}"
                );
            }
        }
    }

    #[test]
    fn what_is_observed_has_no_bounds_and_the_rest_lies_between_them() {
        let curve = observed(10_000, 200, 3000, 7);
        let all = [
            UnobservedReads::Near,
            UnobservedReads::Even,
            UnobservedReads::Far,
        ];
        let shares = |pages: f64| all.map(|unobserved| curve.beyond(pages, unobserved));
        assert!(shares(500.0)[0] == shares(500.0)[2]);
        let [near, even, far] = shares(6000.0);
        assert!(
            near == 0.0 && even > 0.3 && far > even,
            "{near} {even} {far}"
        );
        assert!(shares(10_000.0) == [0.0; 3]);
    }

    proptest! {
        #[test]
        fn shares_fall_with_the_distance(seed in any::<u64>(), uses in 1_usize..400, pages in 1_usize..300) {
            let curve = observed(pages, 3, uses, seed);
            for unobserved in [UnobservedReads::Near, UnobservedReads::Even, UnobservedReads::Far] {
                let mut last = 1.0 + 1e-9;
                for at in 0..=pages {
                    let share = curve.beyond(at as f64, unobserved);
                    prop_assert!((0.0..=last).contains(&share), "{} at {}", share, at);
                    last = share + 1e-9;
                }
                let within = curve.unknown_within(pages as f64, 0.0, unobserved);
                prop_assert!((0.0..=1.0).contains(&within));
            }
        }
    }

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
            let least = ReuseDistanceClass::after(pages).pages().expect("a known class");
            prop_assert!(least <= pages);
            prop_assert!((pages + 1) as f64 <= (least + 1) as f64 * 1.1, "{} for {}", least, pages);
            prop_assert!(ReuseDistanceClass::after(pages) <= ReuseDistanceClass::after(pages + 1));
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
