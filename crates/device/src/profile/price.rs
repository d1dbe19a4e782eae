//! What a device costs.

use crate::problem::{Problem, SectionResult};
use crate::section::Section;

/// Months over which the price of a bought device is spread: five years, the usual term of its guarantee.
pub const SERVICE_LIFE_MONTHS: f64 = 60.0;

const MOST_USD: f64 = 1e9;

/// Price of a device: bought once, or rented by the month. An absent field is not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Price {
    /// To buy the whole device, in US dollars.
    pub usd: Option<f64>,
    /// To rent 10^9 bytes for a month, in US dollars.
    pub usd_per_gb_month: Option<f64>,
    /// To rent one I/O per second above those included, for a month, in US dollars.
    pub usd_per_iops_month: Option<f64>,
    /// Steps of that price: a number of I/Os per second, ascending, and the price of each one above it.
    pub usd_per_iops_month_above: Vec<(f64, f64)>,
    /// To rent 10^6 bytes per second above those included, for a month, in US dollars.
    pub usd_per_mb_per_s_month: Option<f64>,
    /// I/Os per second that the price of the size includes.
    pub included_iops: f64,
    /// 10^6 bytes per second that the price of the size includes.
    pub included_mb_per_s: f64,
}

impl Price {
    /// Reads the table `price`; without one, nothing about the price is known.
    pub(crate) fn parse(root: &mut Section<'_>) -> SectionResult<Self> {
        if !root.has("price") {
            return Ok(Self::default());
        }
        let mut section = root.section("price")?;
        let price = Self::parse_table(&mut section)?;
        section.finish()?;
        Ok(price)
    }

    fn parse_table(section: &mut Section<'_>) -> SectionResult<Self> {
        let mut optional = |key| {
            section
                .has(key)
                .then(|| section.number(key, 0.0..=MOST_USD))
                .transpose()
        };
        Ok(Self {
            usd: optional("usd")?,
            usd_per_gb_month: optional("usd_per_gb_month")?,
            usd_per_iops_month: optional("usd_per_iops_month")?,
            usd_per_mb_per_s_month: optional("usd_per_mb_per_s_month")?,
            usd_per_iops_month_above: steps(section)?,
            included_iops: section.number_or("included_iops", 0.0, 0.0..=1e9)?,
            included_mb_per_s: section.number_or("included_mb_per_s", 0.0, 0.0..=1e9)?,
        })
    }

    /// Price of a month, in US dollars: the rent, with I/Os per second and 10^6 bytes per second above those
    /// included; or the purchase spread over [`SERVICE_LIFE_MONTHS`].
    pub fn per_month(&self, capacity_bytes: u64, iops: f64, mb_per_s: f64) -> Option<f64> {
        let rented = |usd| usd * capacity_bytes as f64 / 1e9;
        let bought = |usd| usd / SERVICE_LIFE_MONTHS;
        let size = self.usd_per_gb_month.map(rented).or(self.usd.map(bought))?;
        let throughput = (mb_per_s - self.included_mb_per_s).max(0.0);
        Some(
            size + self.iops_per_month(iops)
                + throughput * self.usd_per_mb_per_s_month.unwrap_or(0.0),
        )
    }

    /// Each step replaces the price before it for the I/Os above the step.
    fn iops_per_month(&self, iops: f64) -> f64 {
        let (mut usd, mut price) = (0.0, self.usd_per_iops_month.unwrap_or(0.0));
        let mut counted = self.included_iops.min(iops);
        for &(above, next_price) in &self.usd_per_iops_month_above {
            let end = above.clamp(counted, iops);
            usd += (end - counted) * price;
            (counted, price) = (end, next_price);
        }
        usd + (iops - counted) * price
    }
}

fn steps(section: &mut Section<'_>) -> SectionResult<Vec<(f64, f64)>> {
    const KEY: &str = "usd_per_iops_month_above";
    if !section.has(KEY) {
        return Ok(Vec::new());
    }
    let steps = section.pairs(KEY, 0.0..=1e9, 0.0..=MOST_USD)?;
    if steps.windows(2).any(|pair| pair[1].0 <= pair[0].0) {
        return Err(Problem::new(
            format!("{} is not ascending", section.name(KEY)),
            "give pairs in ascending order of I/Os per second",
        ));
    }
    Ok(steps)
}
