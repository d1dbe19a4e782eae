//! Chance from a seed.

use tierwise_device::random::SplitMix;

/// Numbers below a bound, the same for the same seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(SplitMix);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix::new(seed))
    }

    pub(crate) fn draw(&mut self) -> u64 {
        self.0.draw()
    }

    /// The next number, scaled to lie below `end`, which is above 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.0.draw()) * end as u128) >> 64) as usize
    }
}
