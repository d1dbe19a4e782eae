//! Limits of a volume of a given size: some follow its size, some were provisioned.

use std::ops::RangeInclusive;

use crate::problem::{Problem, SectionResult};
use crate::section::Section;

/// Limits that a volume may have, in I/Os or 10⁶ bytes per second.
pub(super) const RATE: RangeInclusive<f64> = 1e-6..=1e9;

/// Reads a limit for a volume of `size_gib` with `iops`: `base + per_gib · size + per_iops · I/Os`, not below
/// `least`, not above `most`; `most` alone is a limit for every size. What is `provisioned` must be within it.
pub(super) fn parse(mut section: Section<'_>, size_gib: f64, iops: f64) -> SectionResult<f64> {
    let mut part = |key| section.number_or(key, 0.0, 0.0..=*RATE.end());
    let by_size = part("base")? + part("per_gib")? * size_gib + part("per_iops")? * iops;
    let least = part("least")?;
    let most = section.number("most", RATE)?;
    section.require("most", most, least..=*RATE.end())?;
    let allowed = if by_size + least == 0.0 {
        most
    } else {
        by_size.clamp(least, most)
    };
    let value = section.number_or("provisioned", allowed, RATE)?;
    let name = section.name("provisioned");
    section.finish()?;
    // Rates given with a few digits must not fail by rounding.
    if value > allowed * (1.0 + 1e-6) {
        return Err(Problem::new(
            format!("{name} = {value} is more than a volume of {size_gib} GiB allows"),
            format!("give at most {allowed}"),
        ));
    }
    Ok(value)
}
