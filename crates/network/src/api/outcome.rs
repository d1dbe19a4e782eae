//! The answer to a scenario.

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

/// I/O of one role.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RoleIo {
    /// The role.
    pub role: Role,
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time in which at least one request of the role was outstanding.
    pub busy_s: f64,
}

/// The answer to one scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Measured virtual time.
    pub elapsed_s: f64,
    /// Turns of client sessions.
    pub turns: u64,
    /// Transactions of client sessions.
    pub transactions: u64,
    /// Latency of transactions.
    pub latency: Latency,
    /// Share of the client sessions' time by category: cpu, runnable, log_device, log_queue, read, write, lock,
    /// client, sleep, other. The shares sum to 1.
    pub shares: Vec<(String, f64)>,
    /// Commits per flush of the log.
    pub commits_per_flush: f64,
    /// Mean utilisation of the cores.
    pub busy_share: f64,
    /// Requests by role.
    pub io: Vec<RoleIo>,
    /// Transactions waiting for a session at the end, in an open loop.
    pub waiting: u64,
    /// Reasons why the answer is less certain than usual, as sentences.
    pub warnings: Vec<String>,
}
