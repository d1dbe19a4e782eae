//! Which mapping units are tracked: all of a small device, an evenly spread share of a large one.
//!
//! Of every 2^k consecutive units one is tracked, at a place in its group that a hash of the group's number
//! gives: spatial sampling as by SHARDS (Waldspurger et al., FAST 2015), stratified so that ranges of units
//! are ranges of tracked ones. What is tracked lives in proportionally smaller blocks.

use std::ops::Range;

use crate::random::GOLDEN_GAMMA;

/// Most units tracked: 16 MiB of map.
const MOST_TRACKED: u64 = 1 << 22;

/// The choice of tracked units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    shift: u32,
    tracked: u64,
}

impl Sample {
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
