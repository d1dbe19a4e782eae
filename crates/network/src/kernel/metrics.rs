//! Metrics: the sessions' time by category, latencies and counts of transactions.

use tierwise_device::Nanos;
use tierwise_latency::LatencyHistogram;
use tierwise_work::TimeCategory;

use crate::api::scenario::TransactionLatency;

/// Warm-up of a run that ends after a number of transactions: one in this many of them.
const WARM_UP_DIVISOR: u64 = 5;

/// The consequence of the number of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionMilestone {
    /// The warm-up ends.
    WarmUpOver,
    /// The run ends.
    Enough,
}

/// Measured from [`Metrics::start`] on; earlier values are discarded.
#[derive(Debug)]
pub(crate) struct Metrics {
    counted_from: Option<Nanos>,
    /// Client transactions since the run began.
    all_transactions: u64,
    /// Measured transactions after which the run ends.
    enough: u64,
    spent_ns: [u64; TimeCategory::ALL.len()],
    latency: LatencyHistogram,
    pub(crate) turns: u64,
    pub(crate) transactions: u64,
    pub(crate) commits: u64,
    pub(crate) log_flushes: u64,
}

impl Metrics {
    /// A run ends after `enough` measured transactions.
    pub(crate) fn new(enough: u64) -> Self {
        Self {
            counted_from: None,
            all_transactions: 0,
            enough,
            spent_ns: [0; TimeCategory::ALL.len()],
            latency: LatencyHistogram::new(),
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
        self.latency = LatencyHistogram::new();
        (self.turns, self.transactions) = (0, 0);
        (self.commits, self.log_flushes) = (0, 0);
    }

    /// Measured time, in nanoseconds.
    pub(crate) fn elapsed_ns(&self, now: Nanos) -> Nanos {
        now - self.counted_from.unwrap_or(0)
    }

    /// The sessions' measured time, in nanoseconds.
    pub(crate) fn spent_ns(&self) -> Nanos {
        self.spent_ns.iter().sum()
    }

    /// Client transactions since the run began.
    pub(crate) fn all_transactions(&self) -> u64 {
        self.all_transactions
    }

    /// Counts a client's transaction; returns the consequence of the new number.
    pub(crate) fn count_transaction(&mut self) -> Option<TransactionMilestone> {
        self.all_transactions += 1;
        let (reached, milestone) = if self.is_counting() {
            (
                self.transactions >= self.enough,
                TransactionMilestone::Enough,
            )
        } else {
            let warm_up = self.enough / WARM_UP_DIVISOR;
            (
                self.all_transactions >= warm_up,
                TransactionMilestone::WarmUpOver,
            )
        };
        reached.then_some(milestone)
    }

    /// Adds a session's time from `since` until `now`; adds none if `since` lies in the future.
    pub(crate) fn add_time(&mut self, part: TimeCategory, since: Nanos, now: Nanos) {
        if let Some(from) = self.counted_from {
            self.spent_ns[part as usize] += now.saturating_sub(since.max(from));
        }
    }

    /// Adds a transaction's latency.
    pub(crate) fn add_transaction(&mut self, latency_ns: Nanos) {
        self.transactions += 1;
        self.latency.record(latency_ns.max(1));
    }

    pub(crate) fn shares(&self) -> Vec<(String, f64)> {
        let all = self.spent_ns.iter().sum::<u64>().max(1) as f64;
        let parts = TimeCategory::ALL.iter().zip(self.spent_ns);
        parts
            .map(|(part, ns)| (part.name().to_owned(), ns as f64 / all))
            .collect()
    }

    pub(crate) fn latency(&self) -> TransactionLatency {
        self.latency
            .summary()
            .map_or(TransactionLatency::default(), |times| TransactionLatency {
                p50_us: times.p50_us,
                p95_us: times.p95_us,
                p99_us: times.p99_us,
                mean_us: times.mean_us,
            })
    }
}
