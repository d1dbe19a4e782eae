//! Numbers with a unit: read in the unit of their key, kept and bounded in the unit of the model's field.

use std::ops::RangeInclusive;

use super::Section;
use crate::Nanos;
use crate::bounds::CAPACITY_BYTES;
use crate::problem::SectionResult;

const MB: u64 = 1_000_000;

impl Section<'_> {
    /// A duration given in microseconds; the range is in nanoseconds.
    pub(crate) fn micros(
        &mut self,
        key: &'static str,
        range: RangeInclusive<Nanos>,
    ) -> SectionResult<Nanos> {
        self.number(key, in_micros(&range)).map(nanos)
    }

    /// As [`Section::micros`], with a value in nanoseconds for an absent key.
    pub(crate) fn micros_or(
        &mut self,
        key: &'static str,
        default_ns: Nanos,
        range: RangeInclusive<Nanos>,
    ) -> SectionResult<Nanos> {
        let default_us = default_ns as f64 / 1e3;
        self.number_or(key, default_us, in_micros(&range))
            .map(nanos)
    }

    /// A duration given in milliseconds; the range is in nanoseconds.
    pub(crate) fn millis(
        &mut self,
        key: &'static str,
        range: RangeInclusive<Nanos>,
    ) -> SectionResult<Nanos> {
        let range_ms = *range.start() as f64 / 1e6..=*range.end() as f64 / 1e6;
        Ok((self.number(key, range_ms)? * 1e6).round() as Nanos)
    }

    /// A size given in 10⁶ bytes, as drives are sold; in bytes.
    pub(crate) fn capacity(&mut self, key: &'static str) -> SectionResult<u64> {
        Ok(self.integer(key, 1..=CAPACITY_BYTES.end() / MB)? * MB)
    }

    /// As [`Section::capacity`], from 0 on and with a value in bytes for an absent key.
    pub(crate) fn capacity_or(&mut self, key: &'static str, default: u64) -> SectionResult<u64> {
        Ok(self.integer_or(key, default / MB, 0..=CAPACITY_BYTES.end() / MB)? * MB)
    }

    /// A size given in KiB; the range is in sectors, and so is the result.
    pub(crate) fn kib(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> SectionResult<u64> {
        Ok(self.integer(key, in_kib(&range))? * 2)
    }

    /// As [`Section::kib`], with a value in sectors for an absent key.
    pub(crate) fn kib_or(
        &mut self,
        key: &'static str,
        default_sectors: u64,
        range: RangeInclusive<u64>,
    ) -> SectionResult<u64> {
        Ok(self.integer_or(key, default_sectors / 2, in_kib(&range))? * 2)
    }
}

/// A range of nanoseconds in microseconds.
pub(crate) fn in_micros(range: &RangeInclusive<Nanos>) -> RangeInclusive<f64> {
    *range.start() as f64 / 1e3..=*range.end() as f64 / 1e3
}

/// Microseconds in nanoseconds.
pub(crate) fn nanos(us: f64) -> Nanos {
    (us * 1e3).round() as Nanos
}

fn in_kib(range: &RangeInclusive<u64>) -> RangeInclusive<u64> {
    range.start().div_ceil(2)..=range.end() / 2
}
