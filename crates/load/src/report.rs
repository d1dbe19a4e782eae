//! The report of a run.

use std::collections::BTreeMap;

use serde::Serialize;
use tierwise_latency::{Latency, Times};

use crate::plan::Plan;
use crate::worker::Tally;

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
    /// Transactions given up after too many attempts.
    pub errors: u64,
    /// Retries of transactions that gave way (deadlock, serialization).
    pub retries: u64,
    /// Rows that statements of committed transactions returned or changed.
    pub rows: u64,
    /// The sum over committed transactions, if the workload defines one.
    pub checksum: Option<i64>,
    /// The time was over before all was done.
    pub capped: bool,
    /// CPU time of the client threads, in seconds.
    pub client_cpu_s: f64,
    /// Latency of committed transactions by name, and of `all`; retries are part of it.
    pub latency: BTreeMap<String, Latency>,
    /// The same distributions whole, in nanoseconds: HDR histogram V2 in base64.
    pub histograms: BTreeMap<String, String>,
}

/// When a run took place, and the CPU time of its threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub started_ns: u64,
    pub ended_ns: u64,
    pub cpu_ns: u64,
}

impl Span {
    /// Merge the span of another thread.
    pub fn merge(&mut self, other: Self) {
        self.started_ns = self.started_ns.min(other.started_ns);
        self.ended_ns = self.ended_ns.max(other.ended_ns);
        self.cpu_ns += other.cpu_ns;
    }
}

impl Report {
    /// Sum up the counts; `only` is the transaction that the run was restricted to.
    pub(crate) fn new(tally: Tally, plan: &Plan, only: Option<usize>, span: Span) -> Self {
        let mut all = Times::new();
        for times in &tally.by_transaction {
            all.merge(times);
        }
        let transactions = all.count();
        let names = plan.transactions.iter().map(|one| one.name.clone());
        let named: Vec<_> = names
            .zip(tally.by_transaction)
            .chain([("all".to_owned(), all)])
            .collect();
        Self {
            elapsed_s: (span.ended_ns - span.started_ns) as f64 / 1e9,
            started_ns: span.started_ns,
            ended_ns: span.ended_ns,
            transactions,
            errors: tally.errors,
            retries: tally.retries,
            rows: tally.work.rows,
            checksum: plan.has_sum(only).then_some(tally.work.sum),
            capped: tally.capped,
            client_cpu_s: span.cpu_ns as f64 / 1e9,
            latency: named
                .iter()
                .filter_map(|(name, one)| Some((name.clone(), one.summary()?)))
                .collect(),
            histograms: named
                .iter()
                .filter(|(_, one)| one.count() > 0)
                .map(|(name, one)| (name.clone(), one.encoded()))
                .collect(),
        }
    }
}
