//! Counts of clients while they run.

use std::time::Duration;

use tierwise_latency::Times;

use crate::client::Outcome;

/// Counts of a thread's clients so far.
pub(crate) struct Tally {
    pub by_transaction: Vec<Times>,
    pub errors: u64,
    pub retries: u64,
    /// Rows of committed transactions, and what these add to the checksum.
    pub work: Outcome,
    pub capped: bool,
}

impl Tally {
    pub fn new(transactions: usize) -> Self {
        Self {
            by_transaction: vec![Times::new(); transactions],
            errors: 0,
            retries: 0,
            work: Outcome::default(),
            capped: false,
        }
    }

    /// Count a transaction that committed at one of its `attempts`.
    pub fn add(&mut self, transaction: usize, attempts: u64, work: Outcome, latency: Duration) {
        self.retries += attempts - 1;
        self.work.add(work);
        self.by_transaction[transaction].record(latency.as_nanos() as u64);
    }

    pub fn merge(&mut self, other: &Self) {
        self.errors += other.errors;
        self.retries += other.retries;
        self.work.add(other.work);
        self.capped |= other.capped;
        for (mine, theirs) in self.by_transaction.iter_mut().zip(&other.by_transaction) {
            mine.merge(theirs);
        }
    }
}
