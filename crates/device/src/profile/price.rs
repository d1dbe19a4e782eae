//! What a device costs.

use super::{Section, SectionResult};

/// Months over which the price of a bought device is spread: five years, the usual term of its guarantee.
pub const SERVICE_LIFE_MONTHS: f64 = 60.0;

const MOST_USD: f64 = 1e9;

/// Price of a device: bought once, or rented by the month. What is absent is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// To buy the whole device, in US dollars.
    pub usd: Option<f64>,
    /// To rent 10^9 bytes for a month, in US dollars.
    pub usd_per_gb_month: Option<f64>,
    /// To rent one I/O per second above those included, for a month, in US dollars.
    pub usd_per_iops_month: Option<f64>,
    /// To rent 10^6 bytes per second above those included, for a month, in US dollars.
    pub usd_per_mb_per_s_month: Option<f64>,
    /// I/Os per second that the price of the size includes.
    pub included_iops: f64,
    /// 10^6 bytes per second that the price of the size includes.
    pub included_mb_per_s: f64,
}

impl Price {
    pub(crate) fn parse(section: &mut Section<'_>) -> SectionResult<Self> {
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
            included_iops: section.number_or("included_iops", 0.0, 0.0..=1e9)?,
            included_mb_per_s: section.number_or("included_mb_per_s", 0.0, 0.0..=1e9)?,
        })
    }

    /// Price of 10^9 bytes for a month, in US dollars: the rent, or the purchase spread over
    /// [`SERVICE_LIFE_MONTHS`]. Without what I/Os and throughput above the included ones cost.
    pub fn per_gb_month(&self, capacity_bytes: u64) -> Option<f64> {
        let bought = |usd| usd / SERVICE_LIFE_MONTHS / (capacity_bytes as f64 / 1e9);
        self.usd_per_gb_month.or(self.usd.map(bought))
    }
}
