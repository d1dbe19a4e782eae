//! Parameters of the cloud volume and how a profile gives them.

use std::ops::RangeInclusive;

use crate::params_error::{
    CAPACITY_BYTES, ParamsError, SectionResult, TIME_NS, WAIT_NS, require_in_range,
};
use crate::profile_section::{ProfileSection, range_in_micros};
use crate::{Nanos, SECTOR_BYTES};

const GIB_BYTES: u64 = 1 << 30;

/// Times whose share of the limits an idle volume may save up, in nanoseconds: from 1 µs to 10 s.
const WINDOW_NS: RangeInclusive<Nanos> = 1_000..=10_000_000_000;

const QUEUE_DEPTH: RangeInclusive<u32> = 1..=65_536;
const UNIT_SECTORS: RangeInclusive<u64> = 8..=1 << 21;

/// Parameters of [`super::CloudVolume`].
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeParams {
    /// Addressable size, in bytes.
    pub capacity_bytes: u64,
    /// Of a read on an idle volume, without the transfer.
    pub read: LatencyParams,
    /// Of a write on an idle volume, without the transfer.
    pub write: LatencyParams,
    /// Time of a flush and of a discard.
    pub flush_ns: Nanos,
    /// Time the transfer of a sector adds to a request; 0 for none.
    pub sector_ns: f64,
    /// I/Os per second.
    pub iops: f64,
    /// 10⁶ bytes per second; while there are credits, if the volume has such.
    pub mb_per_s: f64,
    /// Time whose share of both limits an idle volume saves up.
    pub window_ns: Nanos,
    /// What counts as one I/O.
    pub count: IoSizeParams,
    /// Requests that are worked on at the same time; `None` for no limit.
    pub queue_depth: Option<u32>,
    /// Throughput credits.
    pub credits: Option<CreditParams>,
}

/// What counts as one I/O.
#[derive(Clone, Debug, PartialEq)]
pub struct IoSizeParams {
    /// Largest I/O: larger requests count as several; 0 if requests of any size count as one.
    pub unit_sectors: u64,
    /// Whether throughput is counted in whole units, however small the request.
    pub whole_units: bool,
    /// How long after a request completes one that continues it is merged with it; `None` for no merging.
    pub merge_window_ns: Option<Nanos>,
}

/// Credits for throughput above a baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct CreditParams {
    /// Rate at which credits come in, in 10⁶ bytes per second.
    pub baseline_mb_per_s: f64,
    /// Most that can be saved up, in bytes.
    pub most_bytes: f64,
}

impl VolumeParams {
    pub(crate) fn parse(root: &mut ProfileSection<'_>) -> SectionResult<Self> {
        let size_gib = root.integer("capacity_gib", 1..=CAPACITY_BYTES.end() / GIB_BYTES)?;
        let mut latency = root.section("latency")?;
        let read = LatencyParams::parse(&mut latency, "read_p50_us", "read_p99_us")?;
        let write = LatencyParams::parse(&mut latency, "write_p50_us", "write_p99_us")?;
        let flush_ns = latency.micros("flush_us", TIME_NS)?;
        let sector_ns = latency.link_ns("transfer_mb_per_s")?;
        latency.finish()?;
        let mut section = root.section("limits")?;
        let iops = parse_limit(section.section("iops")?, size_gib as f64, 0.0)?;
        let mb_per_s = parse_limit(section.section("mb_per_s")?, size_gib as f64, iops)?;
        let params = Self {
            capacity_bytes: size_gib * GIB_BYTES,
            read,
            write,
            flush_ns,
            sector_ns,
            iops,
            mb_per_s,
            window_ns: section.micros("window_us", WINDOW_NS)?,
            count: IoSizeParams::parse(&mut section)?,
            queue_depth: section.optional("queue_depth", |limits| {
                limits.integer("queue_depth", QUEUE_DEPTH)
            })?,
            credits: read_credits(root, size_gib)?,
        };
        section.finish()?;
        Ok(params)
    }

    /// Sectors per second of the throughput limit.
    pub(super) fn sectors_per_s(&self) -> f64 {
        sectors(self.mb_per_s * 1e6)
    }
}

impl IoSizeParams {
    fn parse(section: &mut ProfileSection<'_>) -> SectionResult<Self> {
        let params = Self {
            unit_sectors: section.kib_or("io_unit_kib", 0, UNIT_SECTORS)?,
            whole_units: section.flag_or("whole_units", false)?,
            merge_window_ns: section.optional("merge_window_us", |limits| {
                limits.micros("merge_window_us", WAIT_NS)
            })?,
        };
        let counts_units = params.whole_units || params.merge_window_ns.is_some();
        if counts_units && params.unit_sectors == 0 {
            return Err(ParamsError::new(
                "limits.whole_units and limits.merge_window_us mean nothing without limits.io_unit_kib",
                "give limits.io_unit_kib, or remove them",
            ));
        }
        Ok(params)
    }
}

impl CreditParams {
    /// Sectors per second of the baseline.
    pub(super) fn sectors_per_s(&self) -> f64 {
        sectors(self.baseline_mb_per_s * 1e6)
    }

    /// Sectors that can be saved up.
    pub(super) fn most_sectors(&self) -> f64 {
        sectors(self.most_bytes)
    }
}

fn sectors(bytes: f64) -> f64 {
    bytes / SECTOR_BYTES as f64
}

fn read_credits(
    root: &mut ProfileSection<'_>,
    size_gib: u64,
) -> SectionResult<Option<CreditParams>> {
    if !root.has("credits") {
        return Ok(None);
    }
    let mut section = root.section("credits")?;
    let most_gib_per_gib = section.number("most_gib_per_gib", 0.0..=1e3)?;
    let baseline_mb_per_s = parse_limit(section.section("mb_per_s")?, size_gib as f64, 0.0)?;
    section.finish()?;
    let most_bytes = most_gib_per_gib * (size_gib * GIB_BYTES) as f64;
    require_in_range("credits in bytes", most_bytes, 0.0..=1e18)?;
    Ok(Some(CreditParams {
        baseline_mb_per_s,
        most_bytes,
    }))
}

// Limits of a volume of a given size: some follow its size, some were provisioned.

/// Limits that a volume may have, in I/Os or 10⁶ bytes per second.
pub(super) const RATE: RangeInclusive<f64> = 1e-6..=1e9;

/// Reads a limit for a volume of `size_gib` with `iops`: `base + per_gib · size + per_iops · I/Os`, not below
/// `least`, not above `most`; `most` alone is a limit for every size. What is `provisioned` must be within it.
pub(super) fn parse_limit(
    mut section: ProfileSection<'_>,
    size_gib: f64,
    iops: f64,
) -> SectionResult<f64> {
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
    require_in_range(&name, value, RATE)?;
    // Rates given with a few digits must not fail by rounding.
    if value > allowed * (1.0 + 1e-6) {
        return Err(ParamsError::new(
            format!("{name} = {value} is more than a volume of {size_gib} GiB allows"),
            format!("give at most {allowed}"),
        ));
    }
    if value < least.min(allowed) * (1.0 - 1e-6) {
        return Err(ParamsError::new(
            format!("{name} = {value} is less than a volume has at least"),
            format!("give at least {least}"),
        ));
    }
    Ok(value)
}

// Latency that varies: a log-normal distribution, given by its median and its 99th percentile. The quantile of a
// share p is median · exp(σ·z(p)) with σ = ln(p99 / median) / z(0.99), z being the standard normal quantile.

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
        section: &mut ProfileSection<'_>,
        p50: &'static str,
        p99: &'static str,
    ) -> SectionResult<Self> {
        let p50_ns = section.micros(p50, LATENCY_NS)?;
        let p99_ns = section.micros(p99, LATENCY_NS)?;
        section.require(
            p99,
            p99_ns as f64 / 1e3,
            range_in_micros(&(p50_ns..=*LATENCY_NS.end())),
        )?;
        Ok(Self { p50_ns, p99_ns })
    }

    fn quantile(&self, share: f64) -> f64 {
        let sigma = (self.p99_ns as f64 / self.p50_ns as f64).ln() / Z99;
        self.p50_ns as f64 * (sigma * standard_normal_quantile(share)).exp()
    }
}

/// A distribution to draw from: a look-up for each draw.
#[derive(Debug)]
pub(super) struct LogNormalLatency(Box<[u32]>);

impl LogNormalLatency {
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
        return q * evaluate_polynomial(
            r,
            [3.3871327179, 50.434271938, 159.29113202, 59.109374720],
        ) / evaluate_polynomial(r, [1.0, 17.895169469, 78.757757664, 67.187563600]);
    }
    let r = (-share.min(1.0 - share).ln()).sqrt();
    let z = if r <= 5.0 {
        let r = r - 1.6;
        evaluate_polynomial(r, [1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103])
            / evaluate_polynomial(r, [1.0, 0.73700164250, 0.12021132975, 0.0])
    } else {
        let r = r - 5.0;
        evaluate_polynomial(
            r,
            [6.6579051150, 3.0812263860, 0.42868294337, 0.017337203997],
        ) / evaluate_polynomial(r, [1.0, 0.24197894225, 0.012258202635, 0.0])
    };
    z.copysign(q)
}

fn evaluate_polynomial(x: f64, coefficients: [f64; 4]) -> f64 {
    coefficients
        .iter()
        .rev()
        .fold(0.0, |sum, coefficient| sum * x + coefficient)
}

#[cfg(test)]
mod tests {
    use super::*;

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
