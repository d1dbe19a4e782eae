//! A token bucket in closed form: the virtual scheduling algorithm of ITU-T I.371 (the generic cell rate
//! algorithm). One time holds the bucket's whole state, so that nothing ticks.

use crate::Nanos;

/// Bits after the point of a time: a token may take a fraction of a nanosecond more or less.
const FRACTION_BITS: u32 = 8;

/// Tokens that come in at a steady rate up to a depth; takers wait until there are enough.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    /// Time in which one token comes in; as all times here in 2⁻⁸ ns.
    token: f64,
    /// Time in which an empty bucket fills.
    depth: u64,
    /// When the bucket will be full if nothing is taken.
    full_at: u64,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn new(tokens_per_s: f64, depth_tokens: f64) -> Self {
        let token = 1e9 * f64::from(1 << FRACTION_BITS) / tokens_per_s;
        Self {
            token,
            depth: (token * depth_tokens) as u64,
            full_at: 0,
        }
    }

    /// The earliest time at which the bucket holds `tokens`; for more than its depth, at which it is full.
    #[inline]
    pub(super) fn ready_at(&self, tokens: u64) -> Nanos {
        let spare = self.depth.saturating_sub(self.time_of(tokens));
        self.full_at
            .saturating_sub(spare)
            .div_ceil(1 << FRACTION_BITS)
    }

    /// Takes `tokens` at a time from [`Bucket::ready_at`] on. More than the depth leaves a debt.
    #[inline]
    pub(super) fn take(&mut self, at: Nanos, tokens: u64) {
        self.full_at = self.full_at.max(at << FRACTION_BITS) + self.time_of(tokens);
    }

    /// Leaves nothing in the bucket at time `at`.
    pub(super) fn empty(&mut self, at: Nanos) {
        self.full_at = (at << FRACTION_BITS) + self.depth;
    }

    #[inline]
    fn time_of(&self, tokens: u64) -> u64 {
        (tokens as f64 * self.token) as u64
    }
}
