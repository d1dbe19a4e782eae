//! Consumers of the times of requests.

use serde::Serialize;
use tierwise_device::Op;
use tierwise_latency::{Latency, Times};

use crate::Done;

/// Takes every completed request, in the order in which completions were seen.
pub trait Sink {
    /// One request.
    fn done(&mut self, done: &Done);
}

/// Ignores them.
impl Sink for () {
    fn done(&mut self, _done: &Done) {}
}

/// Every single time, in order of completion.
#[derive(Debug, Default)]
pub struct Trace(pub Vec<Done>);

impl Sink for Trace {
    fn done(&mut self, done: &Done) {
        self.0.push(*done);
    }
}

/// Counts and distributions by operation.
#[derive(Debug)]
pub struct Counted {
    reads: Times,
    writes: Times,
    flushes: Times,
    bytes: u64,
}

/// Results of one run.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Reads and writes.
    pub requests: u64,
    /// Transferred.
    pub bytes: u64,
    /// From the first request to the last completion.
    pub elapsed_s: f64,
    /// Latency of reads, if there were any.
    pub read: Option<Latency>,
    /// Latency of writes, if there were any.
    pub write: Option<Latency>,
    /// Latency of flushes, if there were any.
    pub flush: Option<Latency>,
}

impl Counted {
    /// Nothing counted yet.
    #[expect(clippy::new_without_default, reason = "histograms are made on purpose")]
    pub fn new() -> Self {
        Self {
            reads: Times::new(),
            writes: Times::new(),
            flushes: Times::new(),
            bytes: 0,
        }
    }

    /// The sums of a run that took `elapsed_ns`.
    pub fn measured(&self, elapsed_ns: u64) -> Measured {
        Measured {
            requests: self.reads.count() + self.writes.count(),
            bytes: self.bytes,
            elapsed_s: elapsed_ns as f64 / 1e9,
            read: self.reads.summary(),
            write: self.writes.summary(),
            flush: self.flushes.summary(),
        }
    }
}

impl Sink for Counted {
    fn done(&mut self, done: &Done) {
        let times = match done.op {
            Op::Read => &mut self.reads,
            Op::Write => &mut self.writes,
            Op::Flush | Op::Discard => &mut self.flushes,
        };
        times.record(done.end_ns - done.start_ns);
        self.bytes += done.bytes;
    }
}
