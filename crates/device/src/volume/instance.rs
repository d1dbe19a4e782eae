//! Limits that a machine sets for all network volumes attached to it: one gate that their requests pass.
//!
//! Models: I/Os and throughput as token buckets, as of a volume; a baseline and a burst that lasts for a time, as
//! credits that come in at the baseline. A request counts as one I/O. Source: Amazon EC2 user guide, "EBS-optimized
//! instance types"; Microsoft Learn, "Virtual machine and disk performance"; Google Cloud, "Performance limits" of
//! disks.
//! Does not model: requests that a provider splits or merges; separate limits for reads and writes; other tenants.

use serde::Deserialize;

use crate::params_error::{ParamsError, SectionResult, require_in_range};
use crate::volume::params::RATE;
use crate::{Nanos, SECTOR_BYTES};

/// Time whose share of the limits an idle machine saves up, in seconds: as in the profiles of volumes.
const WINDOW_S: f64 = 0.1;
/// Longest burst, in seconds: a day.
const BURST_S: std::ops::RangeInclusive<f64> = 1e-3..=86_400.0;

/// Limits of a machine for all its network volumes together.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct InstanceLimits {
    /// I/Os per second that the machine sustains.
    pub iops: f64,
    /// 10⁶ bytes per second that it sustains.
    pub mb_per_s: f64,
    /// What it reaches for a time, from full credits; `None` if it has no burst.
    #[serde(default)]
    pub burst: Option<InstanceBurst>,
}

/// A burst of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceBurst {
    /// I/Os per second.
    pub iops: f64,
    /// 10⁶ bytes per second.
    pub mb_per_s: f64,
    /// How long it lasts from full credits, in seconds.
    pub time_s: f64,
}

/// The gate: requests to all network volumes of a machine pass it in order of arrival.
#[derive(Clone, Debug)]
pub struct InstanceGate {
    /// Of I/Os, then of sectors: the limit at any time, and credits if there is a burst.
    buckets: [(TokenBucket, Option<TokenBucket>); 2],
    /// When the last request passed.
    passed: Nanos,
}

impl InstanceLimits {
    /// Checks that the limits are possible.
    ///
    /// # Errors
    /// A rate that is out of range, or a burst below the baseline.
    pub fn check(&self) -> SectionResult<()> {
        require_in_range("instance.iops", self.iops, RATE)?;
        require_in_range("instance.mb_per_s", self.mb_per_s, RATE)?;
        let Some(burst) = self.burst else {
            return Ok(());
        };
        require_in_range("instance.burst.iops", burst.iops, RATE)?;
        require_in_range("instance.burst.mb_per_s", burst.mb_per_s, RATE)?;
        require_in_range("instance.burst.time_s", burst.time_s, BURST_S)?;
        if burst.iops < self.iops || burst.mb_per_s < self.mb_per_s {
            return Err(ParamsError::new(
                "a burst of the instance is below its baseline",
                "give the higher rates as the burst",
            ));
        }
        Ok(())
    }
}

impl InstanceGate {
    /// A gate whose buckets are full; `spent`: whose credits for a burst are spent.
    ///
    /// # Errors
    /// As [`InstanceLimits::check`].
    pub fn new(limits: &InstanceLimits, spent: bool) -> SectionResult<Self> {
        limits.check()?;
        let sectors = |mb_per_s: f64| mb_per_s * 1e6 / SECTOR_BYTES as f64;
        let bucket = |baseline: f64, burst: Option<(f64, f64)>| {
            let most = burst.map_or(baseline, |(rate, _)| rate);
            let credits = burst.map(|(rate, time_s)| {
                // Never less than one window, or a burst equal to the baseline would let nothing pass.
                let depth = ((rate - baseline) * time_s).max(baseline * WINDOW_S);
                let mut credits = TokenBucket::new(baseline, depth);
                if spent {
                    credits.empty(0);
                }
                credits
            });
            (TokenBucket::new(most, most * WINDOW_S), credits)
        };
        let ios = limits.burst.map(|burst| (burst.iops, burst.time_s));
        let burst = limits.burst;
        let throughput = burst.map(|burst| (sectors(burst.mb_per_s), burst.time_s));
        Ok(Self {
            buckets: [
                bucket(limits.iops, ios),
                bucket(sectors(limits.mb_per_s), throughput),
            ],
            passed: 0,
        })
    }

    /// When a read or write of so many sectors passes that arrives at `now`; it is charged.
    pub fn pass(&mut self, now: Nanos, sectors: u32) -> Nanos {
        let tokens = [1, u64::from(sectors)];
        let mut at = now.max(self.passed);
        for ((limit, credits), tokens) in self.buckets.iter().zip(tokens) {
            at = at.max(limit.ready_at(tokens));
            at = at.max(
                credits
                    .as_ref()
                    .map_or(0, |credits| credits.ready_at(tokens)),
            );
        }
        for ((limit, credits), tokens) in self.buckets.iter_mut().zip(tokens) {
            limit.take(at, tokens);
            if let Some(credits) = credits {
                credits.take(at, tokens);
            }
        }
        self.passed = at;
        at
    }
}

// A token bucket in closed form: the virtual scheduling algorithm of ITU-T I.371 (the generic cell rate
// algorithm). One time holds the bucket's whole state, so that nothing ticks.

/// Bits after the point of a time: a token may take a fraction of a nanosecond more or less.
const FRACTION_BITS: u32 = 8;

/// Tokens that come in at a steady rate up to a depth; takers wait until there are enough.
#[derive(Clone, Debug)]
pub(super) struct TokenBucket {
    /// Time in which one token comes in; as all times here in 2⁻⁸ ns.
    token: f64,
    /// Time in which an empty bucket fills.
    depth: u64,
    /// When the bucket will be full if nothing is taken.
    full_at: u64,
}

impl TokenBucket {
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

    /// Takes `tokens` at a time from [`TokenBucket::ready_at`] on. More than the depth leaves a debt.
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

#[cfg(test)]
mod tests {
    use super::*;

    const STEADY: InstanceLimits = InstanceLimits {
        iops: 4000.0,
        mb_per_s: 100.0,
        burst: None,
    };

    /// Requests that pass in a second from `from_s` on, if there are always more.
    fn per_second(gate: &mut InstanceGate, from_s: u64, sectors: u32) -> usize {
        let (start, end) = (from_s * 1_000_000_000, (from_s + 1) * 1_000_000_000);
        std::iter::repeat_with(|| gate.pass(start, sectors))
            .take_while(|at| *at < end)
            .count()
    }

    #[test]
    fn a_burst_lasts_as_long_as_its_credits() {
        let twice = InstanceBurst {
            iops: 8000.0,
            mb_per_s: 200.0,
            time_s: 3.0,
        };
        let limits = InstanceLimits {
            burst: Some(twice),
            ..STEADY
        };
        let mut gate = InstanceGate::new(&limits, false).expect("sound limits");
        let rates: Vec<usize> = (0..6)
            .map(|second| per_second(&mut gate, second, 8))
            .collect();
        assert!(rates[1] > 7900, "{rates:?}");
        assert!(
            rates[..3].iter().sum::<usize>().abs_diff(24_000) < 10,
            "{rates:?}"
        );
        assert!((3990..4010).contains(&rates[3]), "{rates:?}");
        let mut spent = InstanceGate::new(&limits, true).expect("sound limits");
        let _first = per_second(&mut spent, 0, 8);
        assert!((3990..4010).contains(&per_second(&mut spent, 1, 8)));
    }

    #[test]
    fn large_requests_are_limited_by_throughput() {
        let mut gate = InstanceGate::new(&STEADY, true).expect("sound limits");
        let _saved = per_second(&mut gate, 0, 2048);
        let found = per_second(&mut gate, 1, 2048); // 1 MiB each
        assert!((94..=96).contains(&found), "{found}");
    }

    #[test]
    fn impossible_limits_are_refused() {
        let none = InstanceLimits {
            iops: 0.0,
            ..STEADY
        };
        let lower = InstanceBurst {
            iops: 1.0,
            mb_per_s: 100.0,
            time_s: 60.0,
        };
        let below = InstanceLimits {
            burst: Some(lower),
            ..STEADY
        };
        for limits in [none, below] {
            assert!(InstanceGate::new(&limits, true).is_err());
        }
    }
}
