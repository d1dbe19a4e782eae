//! What is answered.

use serde::Serialize;
use tierwise_recording::Role;

/// Percentiles of the latency of transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Median.
    pub p50_us: f64,
    /// 95th percentile.
    pub p95_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Mean.
    pub mean_us: f64,
}

/// What one role asked of its device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RoleIo {
    /// The role.
    pub role: Role,
    /// Requests that read.
    pub reads: u64,
    /// Requests that wrote.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time in which at least one request of the role was under way.
    pub busy_s: f64,
}

/// The answer to one scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Virtual time that was counted.
    pub elapsed_s: f64,
    /// Turns of client sessions.
    pub turns: u64,
    /// Transactions of client sessions.
    pub transactions: u64,
    /// Latency of transactions.
    pub latency: Latency,
    /// Share of the sessions' time by what it went to: cpu, runnable, log_device, log_queue, read, write,
    /// lock, client, sleep, other; they sum to 1.
    pub shares: Vec<(String, f64)>,
    /// Commits per flush of the log.
    pub commits_per_flush: f64,
    /// Share of the cores that were busy.
    pub busy_share: f64,
    /// Requests by role.
    pub io: Vec<RoleIo>,
    /// Why the answer is less sure than usual, as sentences.
    pub warnings: Vec<String>,
}
