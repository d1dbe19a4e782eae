//! Pseudo-random numbers: the same seed gives the same sequence.

/// The increment of SplitMix64's state: 2⁶⁴ over the golden ratio.
pub const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads a number over 64 bits: the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). 0 stays 0.
pub fn mix_bits(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): good bits from any seed.
#[derive(Clone, Debug)]
pub struct SplitMix(u64);

impl SplitMix {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        mix_bits(self.0)
    }

    /// The next number, scaled to lie below `end` by multiplication; 0 if `end` is 0.
    #[inline]
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.draw()) * end as u128) >> 64) as usize
    }
}

/// Marsaglia's xorshift (Journal of Statistical Software 8(14), 2003): faster, and less good. State 0 stays
/// 0.
#[derive(Clone, Debug)]
pub(crate) struct Xorshift(pub(crate) u64);

impl Xorshift {
    /// The next number.
    #[inline]
    pub(crate) fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// The next number, scaled to lie below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(end)) >> 64) as u64
    }
}
