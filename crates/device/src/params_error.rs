//! What is wrong with one parameter.

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::{Nanos, SECTOR_BYTES};

/// Refuses a value that is not in `range`, as NaN never is.
pub(crate) fn require_in_range<T: PartialOrd + Display>(
    field: &str,
    value: T,
    range: RangeInclusive<T>,
) -> SectionResult<()> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(out_of_range_error(field, value, &range))
}

pub(crate) fn out_of_range_error<T: Display>(
    field: &str,
    value: impl Display,
    range: &RangeInclusive<T>,
) -> ParamsError {
    ParamsError::new(
        format!("{field} = {value} is impossible"),
        format!("give a value from {} to {}", range.start(), range.end()),
    )
}

/// Parameters from which no device can be built. [`crate::ProfileError`] adds the name of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {fix}")]
pub struct ParamsError {
    /// What is wrong, naming the field and its value.
    pub message: String,
    /// What to do about it, in the imperative.
    pub fix: String,
}

impl ParamsError {
    pub(crate) fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            fix: fix.into(),
        }
    }
}

/// Result of reading or checking a part of the parameters.
pub(crate) type SectionResult<T> = Result<T, ParamsError>;

// Bounds that the parameters of several models share: a profile's keys and the constructors are checked by the same.

/// Sizes that a device may have, in bytes: from a sector to 1 PiB.
pub(crate) const CAPACITY_BYTES: RangeInclusive<u64> = SECTOR_BYTES..=1 << 50;

/// Times that a part of a command may take, in nanoseconds: up to 1 s.
pub(crate) const TIME_NS: RangeInclusive<Nanos> = 0..=1_000_000_000;

/// Times that a device may wait before it does something by itself, in nanoseconds: up to 1,000 s.
pub(crate) const WAIT_NS: RangeInclusive<Nanos> = 0..=1_000_000_000_000;

/// Rates of a link, in 10⁶ bytes per second; 0 for a link without limit.
pub(crate) const LINK_MB_PER_S: RangeInclusive<f64> = 0.0..=1e6;

/// The slowest link that has a limit, in 10⁶ bytes per second: one second for a sector.
pub(crate) const SLOWEST_MB_PER_S: f64 = 0.000_512;
