//! Bounds that the parameters of several models share: a profile's keys and the constructors are checked by the same.

use std::ops::RangeInclusive;

use crate::{Nanos, SECTOR_BYTES};

/// Sizes that a device may have, in bytes: from a sector to 1 PiB.
pub(crate) const CAPACITY_BYTES: RangeInclusive<u64> = SECTOR_BYTES..=1 << 50;

/// Times that a part of a command may take, in nanoseconds: up to 1 s.
pub(crate) const TIME_NS: RangeInclusive<Nanos> = 0..=1_000_000_000;

/// Times that a device may wait before it does something by itself, in nanoseconds: up to 1,000 s.
pub(crate) const WAIT_NS: RangeInclusive<Nanos> = 0..=1_000_000_000_000;

/// Times that a link may take for a sector, in nanoseconds: up to 1 s.
pub(crate) const SECTOR_NS: RangeInclusive<f64> = 0.0..=1e9;

/// Rates of a link, in 10⁶ bytes per second; 0 for a link without limit.
pub(crate) const LINK_MB_PER_S: RangeInclusive<f64> = 0.0..=1e6;

/// Nanoseconds a sector takes at a bandwidth of 10⁶ bytes per second; 0 means no limit.
pub(crate) fn sector_ns(mb_per_s: f64) -> f64 {
    if mb_per_s == 0.0 {
        0.0
    } else {
        SECTOR_BYTES as f64 * 1e3 / mb_per_s
    }
}
