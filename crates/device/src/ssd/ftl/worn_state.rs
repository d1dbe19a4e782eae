//! The state after long use, computed instead of replayed.
//!
//! Random overwrites leave the sealed blocks evenly spread in age, from just written to about to be cleaned;
//! a unit survives each overwrite with the same chance, so the share of valid units falls exponentially with
//! age (Desnoyers, SYSTOR 2012). Units are dealt to blocks at random so that each has its share.

use std::ops::Range;

use super::{FlashTranslationLayer, RESERVE};
use crate::random::{GOLDEN_GAMMA, Xorshift};

impl FlashTranslationLayer {
    /// Writes an empty device once, in order.
    pub(in super::super) fn fill(&mut self) {
        self.fill_tracked(0..self.sample.tracked());
    }

    fn fill_tracked(&mut self, tracked: Range<u64>) {
        for unit in tracked {
            self.make_room();
            self.place(unit as u32);
            self.mapped += 1;
        }
    }

    /// Brings an empty device where random overwrites of the first `active_share` of its space, after a
    /// sequential fill, bring it in the long run. What is static stays together in blocks that are full.
    pub(in super::super) fn wear_in(&mut self, active_share: f64) {
        let tracked = self.sample.tracked();
        let active = ((tracked as f64 * active_share) as u64).clamp(1, tracked);
        self.fill_tracked(active..tracked);
        if self.point.filled > 0 {
            self.seal_and_open();
        }
        let sealed = self.free.len() - RESERVE;
        let mut random = WearRandom(Xorshift(GOLDEN_GAMMA));
        let mut units: Vec<u32> = (0..active as u32).collect();
        random.shuffle(&mut units);
        let space = sealed as f64 * f64::from(self.block_units) / active as f64;
        let decay = decay_times(space);
        let share = (-decay).exp();
        let counts = self.valid_counts(decay, sealed, active, &mut random);
        let mut units = units.into_iter();
        for count in counts {
            units
                .by_ref()
                .take(count as usize)
                .for_each(|unit| self.place(unit));
            self.seal_and_open();
        }
        self.mapped += active;
        self.moves_per_write = share / (1.0 - share);
    }

    /// Valid units of `blocks` blocks, the youngest first, `total` in all.
    fn valid_counts(
        &self,
        decay: f64,
        blocks: usize,
        total: u64,
        random: &mut WearRandom,
    ) -> Vec<u32> {
        let size = f64::from(self.block_units);
        let edge = |block: usize| (-decay * block as f64 / blocks as f64).exp();
        let least = ((-decay).exp() * size) as u32;
        let mut counts: Vec<u32> = (0..blocks)
            .map(|block| {
                let mean = (edge(block) - edge(block + 1)) * blocks as f64 / decay;
                let spread = (size * mean * (1.0 - mean).max(0.0)).sqrt();
                let count = (mean * size + spread * random.normal()).round();
                (count.max(0.0) as u32).clamp(least, self.block_units)
            })
            .collect();
        self.balance(&mut counts, total, random);
        counts
    }

    /// Adds or takes single units at random blocks until the sum is `total`.
    fn balance(&self, counts: &mut [u32], total: u64, random: &mut WearRandom) {
        let mut sum: u64 = counts.iter().map(|&count| u64::from(count)).sum();
        while sum != total {
            let count = &mut counts[random.below(counts.len() as u64) as usize];
            if sum < total && *count < self.block_units {
                *count += 1;
                sum += 1;
            } else if sum > total && *count > 0 {
                *count -= 1;
                sum -= 1;
            }
        }
    }
}

/// Random choices of a worn device: the same every time.
struct WearRandom(Xorshift);

impl WearRandom {
    fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    /// About a standard normal value: the sum of twelve uniform ones.
    fn normal(&mut self) -> f64 {
        let uniform = (0..12).map(|_| self.below(1 << 32) as f64 / (1_u64 << 32) as f64);
        uniform.sum::<f64>() - 6.0
    }

    fn shuffle(&mut self, values: &mut [u32]) {
        for end in (1..values.len()).rev() {
            values.swap(end, self.below(end as u64 + 1) as usize);
        }
    }
}

// Write amplification of uniform random writes, in closed form.

/// Steps of the bisection: each gains a bit.
const STEPS: u32 = 60;

/// Write amplification under uniform random writes with a share `spare_share` of flash beyond the addressable
/// size, above 0, in the limit of large blocks: (1+ρ) / (1+ρ + W₀(−(1+ρ)e^{−(1+ρ)})).
///
/// Sources: Xiang and Kurkoski, "An improved analytic expression for write amplification in NAND flash", ICNC
/// 2012; Desnoyers, "Analytic modeling of SSD write performance", SYSTOR 2012.
pub fn uniform_write_amplification(spare_share: f64) -> f64 {
    -1.0 / (-decay_times(1.0 + spare_share)).exp_m1()
}

/// How many decay times pass from the write of a block to its cleaning, as its share of valid units falls,
/// with `space` slots, more than 1, for each valid unit.
/// Blocks are written at an even rate, and each loses valid units in proportion to those it has. So the
/// mean share over blocks of all ages is (1 − e^{−decay}) / decay, and it must be 1 / space. The
/// remaining share is then −W₀(−space·e^{−space}) / space.
pub(super) fn decay_times(space: f64) -> f64 {
    let (mut low, mut high) = (space.ln(), space);
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        if -space * (-middle).exp_m1() > middle {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}
