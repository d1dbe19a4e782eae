//! Latency that varies: a log-normal distribution, given by its median and its 99th percentile. The quantile of a
//! share p is median · exp(σ·z(p)) with σ = ln(p99 / median) / z(0.99), z being the standard normal quantile.

use std::ops::RangeInclusive;

use crate::Nanos;
use crate::problem::{SectionResult, require};
use crate::section::{Section, in_micros};

/// Equally likely values that stand for the distribution. The rarest of them is its 99.99th percentile.
const VALUES: usize = 4096;

/// A median or 99th percentile, in nanoseconds: no more than a look-up of 32 bits holds.
const LATENCY_NS: RangeInclusive<Nanos> = 1..=4_000_000_000;

/// The 99th percentile of the standard normal distribution.
const Z99: f64 = 2.326_347_874;

/// Median and 99th percentile of a log-normal distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyParams {
    /// Half of the requests are faster.
    pub p50_ns: Nanos,
    /// One in a hundred is slower.
    pub p99_ns: Nanos,
}

impl LatencyParams {
    pub(super) fn parse(
        section: &mut Section<'_>,
        p50: &'static str,
        p99: &'static str,
    ) -> SectionResult<Self> {
        let p50_ns = section.micros(p50, LATENCY_NS)?;
        let p99_ns = section.micros(p99, LATENCY_NS)?;
        section.require(
            p99,
            p99_ns as f64 / 1e3,
            in_micros(&(p50_ns..=*LATENCY_NS.end())),
        )?;
        Ok(Self { p50_ns, p99_ns })
    }

    pub(super) fn check(&self, name: &str) -> SectionResult<()> {
        require(&format!("{name}.p50_ns"), self.p50_ns, LATENCY_NS)?;
        require(
            &format!("{name}.p99_ns"),
            self.p99_ns,
            self.p50_ns..=*LATENCY_NS.end(),
        )
    }

    fn quantile(&self, share: f64) -> f64 {
        let sigma = (self.p99_ns as f64 / self.p50_ns as f64).ln() / Z99;
        self.p50_ns as f64 * (sigma * standard_normal_quantile(share)).exp()
    }
}

/// A distribution to draw from: a look-up for each draw.
#[derive(Debug)]
pub(super) struct Latency(Box<[u32]>);

impl Latency {
    pub(super) fn new(params: &LatencyParams) -> Self {
        let value = |index| params.quantile((index as f64 + 0.5) / VALUES as f64) as u32;
        Self((0..VALUES).map(value).collect())
    }

    /// The value that a uniform random number stands for.
    #[inline]
    pub(super) fn draw(&self, random: u64) -> Nanos {
        let index = random >> (u64::BITS - VALUES.ilog2());
        Nanos::from(self.0[index as usize])
    }
}

/// Inverse of the standard normal distribution, good to seven digits: Wichura, algorithm AS 241 (PPND7), Applied
/// Statistics 37(3), 1988.
fn standard_normal_quantile(share: f64) -> f64 {
    let q = share - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180625 - q * q;
        return q * horner(r, [3.3871327179, 50.434271938, 159.29113202, 59.109374720])
            / horner(r, [1.0, 17.895169469, 78.757757664, 67.187563600]);
    }
    let r = (-share.min(1.0 - share).ln()).sqrt();
    let z = if r <= 5.0 {
        let r = r - 1.6;
        horner(r, [1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103])
            / horner(r, [1.0, 0.73700164250, 0.12021132975, 0.0])
    } else {
        let r = r - 5.0;
        horner(
            r,
            [6.6579051150, 3.0812263860, 0.42868294337, 0.017337203997],
        ) / horner(r, [1.0, 0.24197894225, 0.012258202635, 0.0])
    };
    z.copysign(q)
}

fn horner(x: f64, coefficients: [f64; 4]) -> f64 {
    coefficients
        .iter()
        .rev()
        .fold(0.0, |sum, coefficient| sum * x + coefficient)
}

#[cfg(test)]
mod tests {
    use super::standard_normal_quantile;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (share, z) in [
            (0.5, 0.0),
            (0.841_344_746, 1.0),
            (0.99, 2.326_347_874),
            (0.999_9, 3.719_016_485),
            (1e-6, -4.753_424_309),
            (0.01, -2.326_347_874),
        ] {
            let found = standard_normal_quantile(share);
            assert!((found - z).abs() < 1e-6, "{share}: {found}, not {z}");
        }
    }
}
