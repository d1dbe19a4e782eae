//! Distributions of time.

use hdrhistogram::Histogram;
use serde::Serialize;
use tierwise_device::Nanos;

/// Resolution and longest time that a histogram tells apart; longer ones count as the longest.
const RESOLUTION_NS: u64 = 100;
const LONGEST_NS: u64 = 100_000_000_000;

/// Percentiles of a distribution of times, in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Number of times.
    pub count: u64,
    /// Mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 95th percentile.
    pub p95_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Longest.
    pub max_us: f64,
}

/// A histogram of times with a relative error of 0.1 %.
pub(crate) struct Times(Histogram<u64>);

impl Times {
    pub fn new() -> Self {
        Self(
            Histogram::new_with_bounds(RESOLUTION_NS, LONGEST_NS, 3)
                .expect("constant bounds are valid"),
        )
    }

    pub fn record(&mut self, time: Nanos) {
        self.0.saturating_record(time);
    }

    /// The percentiles, or `None` if nothing was recorded.
    pub fn summary(&self) -> Option<Latency> {
        let us = |quantile| self.0.value_at_quantile(quantile) as f64 / 1e3;
        (!self.0.is_empty()).then(|| Latency {
            count: self.0.len(),
            mean_us: self.0.mean() / 1e3,
            p50_us: us(0.50),
            p95_us: us(0.95),
            p99_us: us(0.99),
            p999_us: us(0.999),
            max_us: self.0.max() as f64 / 1e3,
        })
    }
}
