//! The earliest of many times that change often.

use crate::Nanos;

const NEVER: Nanos = Nanos::MAX;

/// A tree of minima over a fixed number of places: a change costs the height of the tree at most.
#[derive(Debug)]
pub(super) struct Tournament {
    /// Node `i` has the lesser of nodes `2i` and `2i + 1`; the second half are the places.
    least: Vec<Nanos>,
}

impl Tournament {
    pub(super) fn new(places: usize) -> Self {
        Self {
            least: vec![NEVER; 2 * places.next_power_of_two()],
        }
    }

    pub(super) fn set(&mut self, place: usize, at: Option<Nanos>) {
        let mut node = self.least.len() / 2 + place;
        self.least[node] = at.unwrap_or(NEVER);
        while node > 1 {
            node /= 2;
            let least = self.least[2 * node].min(self.least[2 * node + 1]);
            if self.least[node] == least {
                return;
            }
            self.least[node] = least;
        }
    }

    /// The earliest time, if there is any.
    pub(super) fn earliest(&self) -> Option<Nanos> {
        Some(self.least[1]).filter(|&at| at != NEVER)
    }

    /// The first place that has the earliest time.
    pub(super) fn first(&self) -> usize {
        let half = self.least.len() / 2;
        let mut node = 1;
        while node < half {
            node *= 2;
            node += usize::from(self.least[node] != self.least[1]);
        }
        node - half
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_the_first_of_the_least(
            places in 1_usize..101,
            changes in prop::collection::vec((0_usize..100, prop::option::of(0_u64..50)), 1..200),
        ) {
            let mut times = vec![None; places];
            let mut tree = Tournament::new(places);
            for (place, at) in changes {
                times[place % places] = at;
                tree.set(place % places, at);
                let least = times.iter().flatten().min().copied();
                prop_assert_eq!(tree.earliest(), least);
                if least.is_some() {
                    prop_assert_eq!(Some(tree.first()), times.iter().position(|&at| at == least));
                }
            }
        }
    }
}
