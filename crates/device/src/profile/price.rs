//! The table `price` of a user's own profile. It is checked here; who bills reads it from the profile's fields.

use crate::problem::{ParamsError, SectionResult};
use crate::section::Section;

const MOST_USD: f64 = 1e9;
const MOST_INCLUDED: f64 = 1e9;
const STEPS: &str = "usd_per_iops_month_above";

/// Checks the table `price`, if there is one: US dollars to buy the whole device, or to rent 10^9 bytes, an
/// I/O per second and 10^6 bytes per second for a month.
pub(crate) fn check(root: &mut Section<'_>) -> SectionResult<()> {
    if !root.has("price") {
        return Ok(());
    }
    let mut section = root.section("price")?;
    for (key, most) in [
        ("usd", MOST_USD),
        ("usd_per_gb_month", MOST_USD),
        ("usd_per_iops_month", MOST_USD),
        ("usd_per_mb_per_s_month", MOST_USD),
        ("included_iops", MOST_INCLUDED),
        ("included_mb_per_s", MOST_INCLUDED),
    ] {
        section.optional(key, |price| price.number(key, 0.0..=most))?;
    }
    check_steps(&mut section)?;
    section.finish()
}

/// Steps of the price of an I/O: a number of them, ascending, and the price of each one above it.
fn check_steps(section: &mut Section<'_>) -> SectionResult<()> {
    let steps = section.optional(STEPS, |price| {
        price.pairs(STEPS, 0.0..=MOST_INCLUDED, 0.0..=MOST_USD)
    })?;
    let steps = steps.unwrap_or_default();
    if steps.windows(2).any(|pair| pair[1].0 <= pair[0].0) {
        return Err(ParamsError::new(
            format!("{} is not ascending", section.name(STEPS)),
            "give pairs in ascending order of I/Os per second",
        ));
    }
    Ok(())
}
