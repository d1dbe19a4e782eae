//! Completed requests, by kind.

use tierwise_device::{Nanos, Op, Request, SECTOR_BYTES};
use tierwise_latency::{Latency, Times};

/// The kinds of requests, in the order of reports.
pub(crate) const OPS: [(Op, &str); 4] = [
    (Op::Read, "read"),
    (Op::Write, "write"),
    (Op::Flush, "flush"),
    (Op::Discard, "discard"),
];

/// Times and bytes of one kind of request, or of all.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    times: Times,
    sum_ns: u128,
    bytes: u64,
}

impl Tally {
    fn new() -> Self {
        Self {
            times: Times::new(),
            sum_ns: 0,
            bytes: 0,
        }
    }

    fn record(&mut self, request: &Request, service_ns: Nanos) {
        self.times.record(service_ns);
        self.sum_ns += u128::from(service_ns);
        if matches!(request.op, Op::Read | Op::Write) {
            self.bytes += u64::from(request.sectors) * SECTOR_BYTES;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.times.merge(&other.times);
        self.sum_ns += other.sum_ns;
        self.bytes += other.bytes;
    }

    /// The percentiles, with the exact mean rather than one rounded to the histogram's steps.
    pub(crate) fn latency(&self) -> Option<Latency> {
        self.times.summary().map(|latency| Latency {
            mean_us: self.sum_ns as f64 / latency.count as f64 / 1e3,
            ..latency
        })
    }

    pub(crate) fn count(&self) -> u64 {
        self.times.count()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A tally for each kind of request.
#[derive(Clone, Debug)]
pub(crate) struct Tallies([Tally; OPS.len()]);

impl Tallies {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| Tally::new()))
    }

    pub(crate) fn record(&mut self, request: &Request, service_ns: Nanos) {
        let index = match request.op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Flush => 2,
            Op::Discard => 3,
        };
        self.0[index].record(request, service_ns);
    }

    /// The kinds that occurred, by name.
    pub(crate) fn by_op(&self) -> impl Iterator<Item = (&'static str, &Tally)> {
        let named = OPS.iter().map(|(_, name)| *name).zip(&self.0);
        named.filter(|(_, tally)| tally.count() > 0)
    }

    /// All kinds together.
    pub(crate) fn total(&self) -> Tally {
        let mut total = Tally::new();
        self.0.iter().for_each(|tally| total.merge(tally));
        total
    }

    /// Number of requests that transferred data.
    pub(crate) fn transfers(&self) -> u64 {
        self.0[0].count() + self.0[1].count()
    }
}
