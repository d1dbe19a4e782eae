//! Distributions of latency, recorded and summed up the same way wherever tierwise measures one.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use serde::Serialize;

const SHORTEST_NS: u64 = 1;
const LONGEST_NS: u64 = 100_000_000_000;
const DIGITS: u8 = 3;

/// Percentiles of a distribution of times, in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LatencyPercentiles {
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

/// A high dynamic range histogram of times: 1 ns to 100 s, with a relative error of 0.1 %.
#[derive(Clone, Debug)]
pub struct LatencyHistogram(Histogram<u64>);

impl LatencyHistogram {
    /// An empty histogram.
    #[expect(
        clippy::new_without_default,
        reason = "an empty one is made on purpose"
    )]
    pub fn new() -> Self {
        Self(
            Histogram::new_with_bounds(SHORTEST_NS, LONGEST_NS, DIGITS)
                .expect("constant bounds are valid"),
        )
    }

    /// Counts one time, in nanoseconds; longer than the longest counts as the longest.
    pub fn record(&mut self, time_ns: u64) {
        self.0.saturating_record(time_ns);
    }

    /// Counts all that another histogram has counted.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all have the same bounds");
    }

    /// How many times were counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The percentiles, or `None` if nothing was counted.
    pub fn summary(&self) -> Option<LatencyPercentiles> {
        let us = |quantile| self.0.value_at_quantile(quantile) as f64 / 1e3;
        (!self.0.is_empty()).then(|| LatencyPercentiles {
            count: self.0.len(),
            mean_us: self.0.mean() / 1e3,
            p50_us: us(0.50),
            p95_us: us(0.95),
            p99_us: us(0.99),
            p999_us: us(0.999),
            max_us: self.0.max() as f64 / 1e3,
        })
    }

    /// The whole distribution, in nanoseconds: HDR histogram V2 in base64.
    pub fn encoded(&self) -> String {
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(&self.0, &mut bytes)
            .expect("memory takes all bytes");
        BASE64_STANDARD.encode(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_percentiles() {
        assert_eq!(LatencyHistogram::new().summary(), None);
    }

    #[test]
    fn percentiles_are_those_of_what_was_recorded() {
        let mut times = LatencyHistogram::new();
        for us in 1..=1000 {
            times.record(us * 1000);
        }
        let latency = times.summary().expect("times were recorded");
        let close = |found: f64, true_us: f64| (found / true_us - 1.0).abs() < 0.002;
        assert_eq!(latency.count, 1000);
        assert!(close(latency.mean_us, 500.5) && close(latency.p50_us, 500.0));
        assert!(close(latency.p99_us, 990.0) && close(latency.max_us, 1000.0));
    }

    #[test]
    fn merging_counts_both() {
        let (mut one, mut other) = (LatencyHistogram::new(), LatencyHistogram::new());
        one.record(1_000);
        other.record(3_000);
        one.merge(&other);
        assert_eq!(one.count(), 2);
        assert!((one.summary().expect("two times").mean_us - 2.0).abs() < 0.01);
    }
}
