//! What a run reports.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use serde::Serialize;

use crate::plan::Plan;

const SHORTEST_NS: u64 = 1_000;
const LONGEST_NS: u64 = 100_000_000_000;
const DIGITS: u8 = 3;

/// One run of a pool of clients.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// From the start of the first transaction to the end of the last, in seconds.
    pub elapsed_s: f64,
    /// Start on the monotonic clock, in nanoseconds.
    pub started_ns: u64,
    /// End on the monotonic clock, in nanoseconds.
    pub ended_ns: u64,
    /// Transactions that committed.
    pub transactions: u64,
    /// Transactions given up after giving way again and again.
    pub errors: u64,
    /// Times that a transaction gave way (deadlock, serialization) and was tried again.
    pub retries: u64,
    /// CPU time of the client threads, in seconds.
    pub client_cpu_s: f64,
    /// Latency of committed transactions by name, and of `all`; retries are part of it.
    pub latency: BTreeMap<String, Latency>,
    /// The same distributions whole, in nanoseconds: HDR histogram V2 in base64.
    pub histograms: BTreeMap<String, String>,
}

/// A distribution of latencies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Number of transactions.
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

impl Latency {
    fn of(histogram: &Histogram<u64>) -> Self {
        let us = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
        Self {
            count: histogram.len(),
            mean_us: histogram.mean() / 1e3,
            p50_us: us(0.5),
            p95_us: us(0.95),
            p99_us: us(0.99),
            p999_us: us(0.999),
            max_us: histogram.max() as f64 / 1e3,
        }
    }
}

/// What a thread's clients have counted so far.
pub(crate) struct Tally {
    by_transaction: Vec<Histogram<u64>>,
    errors: u64,
    retries: u64,
}

impl Tally {
    pub fn new(transactions: usize) -> Self {
        let by_transaction = (0..transactions).map(|_| empty_histogram()).collect();
        Self {
            by_transaction,
            errors: 0,
            retries: 0,
        }
    }

    /// Count a transaction that took `attempts`, or was given up.
    pub fn add(&mut self, transaction: usize, attempts: Option<u64>, latency: Duration) {
        match attempts {
            Some(attempts) => {
                self.retries += attempts - 1;
                self.by_transaction[transaction].saturating_record(latency.as_nanos() as u64);
            }
            None => self.errors += 1,
        }
    }

    pub fn merge(&mut self, other: &Self) {
        self.errors += other.errors;
        self.retries += other.retries;
        for (mine, theirs) in self.by_transaction.iter_mut().zip(&other.by_transaction) {
            mine.add(theirs).expect("all have the same bounds");
        }
    }

    pub fn report(self, plan: &Plan, started_ns: u64, ended_ns: u64, client_cpu_ns: u64) -> Report {
        let mut all = empty_histogram();
        for histogram in &self.by_transaction {
            all.add(histogram).expect("all have the same bounds");
        }
        let transactions = all.len();
        let names = plan.transactions.iter().map(|one| one.name.clone());
        let named: Vec<_> = names
            .zip(self.by_transaction)
            .chain([("all".to_owned(), all)])
            .filter(|(_, one)| !one.is_empty())
            .collect();
        Report {
            elapsed_s: (ended_ns - started_ns) as f64 / 1e9,
            started_ns,
            ended_ns,
            transactions,
            errors: self.errors,
            retries: self.retries,
            client_cpu_s: client_cpu_ns as f64 / 1e9,
            latency: named
                .iter()
                .map(|(name, one)| (name.clone(), Latency::of(one)))
                .collect(),
            histograms: named
                .iter()
                .map(|(name, one)| (name.clone(), encode(one)))
                .collect(),
        }
    }
}

fn empty_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(SHORTEST_NS, LONGEST_NS, DIGITS).expect("constant bounds are valid")
}

fn encode(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(histogram, &mut bytes)
        .expect("memory takes all bytes");
    BASE64_STANDARD.encode(bytes)
}
