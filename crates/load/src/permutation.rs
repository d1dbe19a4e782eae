//! The numbers of a range in random order, each once.

use rand::Rng;
use tierwise_device::random::mix;

use crate::random::random;
use crate::value::Value;

const ROUNDS: usize = 4;

/// A permutation of a range, the same for all clients, that needs no memory for the range.
///
/// A Feistel network permutes the least even power of two that holds the range; numbers outside the range are
/// permuted again until they fall inside (M. Luby, C. Rackoff, "How to construct pseudorandom permutations",
/// 1988; J. Black, P. Rogaway, "Ciphers with arbitrary finite domains", 2002).
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    of: usize,
    low: i64,
    size: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// Of `low..=high`, by the seed of the load.
    ///
    /// # Errors
    /// If `low` is above `high`.
    pub fn new(of: usize, low: i64, high: i64, seed: u64) -> Result<Self, String> {
        if low > high {
            return Err(format!("low {low} is above high {high}"));
        }
        let size = high.abs_diff(low) + 1;
        let bits = u64::BITS - (size - 1).leading_zeros();
        let mut random = random(seed, &[low as u64, high as u64]);
        Ok(Self {
            of,
            low,
            size,
            half_bits: bits.div_ceil(2).max(1),
            keys: std::array::from_fn(|_| random.next_u64()),
        })
    }

    /// The number in the place that another value names; consecutive places give each number once.
    pub fn write(&self, values: &mut [Value], slot: usize) {
        let place = values[self.of].as_int().unwrap_or(0);
        let mut number = place.rem_euclid(self.size as i64) as u64;
        loop {
            number = self.permute(number);
            if number < self.size {
                break;
            }
        }
        values[slot] = Value::Int(self.low + number as i64);
    }

    fn permute(&self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let halves = (number >> self.half_bits, number & mask);
        let (left, right) = self.keys.iter().fold(halves, |(left, right), key| {
            (right, left ^ (mix(key ^ right) & mask))
        });
        left << self.half_bits | right
    }
}
