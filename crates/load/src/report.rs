//! What a run reports.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use tierwise_latency::{Latency, Times};

use crate::plan::Plan;

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

/// What a thread's clients have counted so far.
pub(crate) struct Tally {
    by_transaction: Vec<Times>,
    errors: u64,
    retries: u64,
}

impl Tally {
    pub fn new(transactions: usize) -> Self {
        let by_transaction = vec![Times::new(); transactions];
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
                self.by_transaction[transaction].record(latency.as_nanos() as u64);
            }
            None => self.errors += 1,
        }
    }

    pub fn merge(&mut self, other: &Self) {
        self.errors += other.errors;
        self.retries += other.retries;
        for (mine, theirs) in self.by_transaction.iter_mut().zip(&other.by_transaction) {
            mine.merge(theirs);
        }
    }

    pub fn report(self, plan: &Plan, started_ns: u64, ended_ns: u64, client_cpu_ns: u64) -> Report {
        let mut all = Times::new();
        for times in &self.by_transaction {
            all.merge(times);
        }
        let transactions = all.count();
        let names = plan.transactions.iter().map(|one| one.name.clone());
        let named: Vec<_> = names
            .zip(self.by_transaction)
            .chain([("all".to_owned(), all)])
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
