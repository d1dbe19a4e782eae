//! Metrics: the sessions' time by category, latencies and counts of transactions.

use tierwise_device::Nanos;
use tierwise_latency::Times;
use tierwise_work::Part;

use crate::api::outcome::Latency;

/// Measured from [`Metrics::start`] on; what came before is discarded.
#[derive(Debug)]
pub(crate) struct Metrics {
    counted_from: Option<Nanos>,
    spent_ns: [u64; Part::ALL.len()],
    latency: Times,
    pub(crate) turns: u64,
    pub(crate) transactions: u64,
    pub(crate) commits: u64,
    pub(crate) log_flushes: u64,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        Self {
            counted_from: None,
            spent_ns: [0; Part::ALL.len()],
            latency: Times::new(),
            turns: 0,
            transactions: 0,
            commits: 0,
            log_flushes: 0,
        }
    }

    /// Whether the warm-up is over.
    pub(crate) fn is_counting(&self) -> bool {
        self.counted_from.is_some()
    }

    /// Discards everything so far and measures from `now`.
    pub(crate) fn start(&mut self, now: Nanos) {
        self.counted_from = Some(now);
        self.latency = Times::new();
        (self.turns, self.transactions) = (0, 0);
        (self.commits, self.log_flushes) = (0, 0);
    }

    /// Adds a session's time from `since` until `now`; `since` may lie in the future, then it adds none.
    pub(crate) fn add_time(&mut self, part: Part, since: Nanos, now: Nanos) {
        if let Some(from) = self.counted_from {
            self.spent_ns[part as usize] += now.saturating_sub(since.max(from));
        }
    }

    /// Adds a transaction with its latency.
    pub(crate) fn add_transaction(&mut self, latency_ns: Nanos) {
        self.transactions += 1;
        self.latency.record(latency_ns.max(1));
    }

    pub(crate) fn shares(&self) -> Vec<(String, f64)> {
        let all = self.spent_ns.iter().sum::<u64>().max(1) as f64;
        let parts = Part::ALL.iter().zip(self.spent_ns);
        parts
            .map(|(part, ns)| (part.name().to_owned(), ns as f64 / all))
            .collect()
    }

    pub(crate) fn latency(&self) -> Latency {
        self.latency
            .summary()
            .map_or(Latency::default(), |times| Latency {
                p50_us: times.p50_us,
                p95_us: times.p95_us,
                p99_us: times.p99_us,
                mean_us: times.mean_us,
            })
    }
}
