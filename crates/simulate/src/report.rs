//! Results of a simulation.

use std::collections::BTreeMap;

use serde::Serialize;
use tierwise_device::{Nanos, Written};
use tierwise_latency::Latency;

use crate::Comparison;
use crate::tally::{Tallies, Tally};

const BYTES_PER_MB: f64 = 1e6;

/// Figures of one kind of request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpReport {
    /// Number and service times: from arrival to completion.
    #[serde(flatten)]
    pub latency: Latency,
    /// Requests per second of virtual time.
    pub per_second: f64,
    /// 10^6 bytes per second of virtual time.
    pub mb_per_s: f64,
}

/// Figures of a whole simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Number and service times of all requests: from arrival to completion.
    #[serde(flatten)]
    pub latency: Latency,
    /// Virtual time from the first arrival to the last completion, in seconds.
    pub virtual_s: f64,
    /// Reads and writes per second of virtual time.
    pub iops: f64,
    /// 10^6 bytes read and written per second of virtual time.
    pub mb_per_s: f64,
    /// Share of virtual time in which a request was outstanding.
    pub busy_share: f64,
    /// Sectors written by requests.
    pub host_sectors: u64,
    /// Sectors written to the medium so far, without those still in a cache.
    pub medium_sectors: u64,
    /// Sectors to the medium for each written by requests; `None` if none were.
    pub write_amplification: Option<f64>,
    /// Erase blocks erased.
    pub erases: u64,
    /// CPU time of the simulating thread, in seconds, without that of reading and writing files.
    pub cpu_s: f64,
    /// Requests simulated per second of that time.
    pub requests_per_cpu_s: f64,
    /// By kind: `read`, `write`, `flush`, `discard`, those that occurred.
    pub ops: BTreeMap<&'static str, OpReport>,
    /// Against measured times, if the requests came with them.
    pub compared: Option<Comparison>,
    /// Virtual time of the last completion, in nanoseconds.
    #[serde(skip)]
    pub end_ns: Nanos,
}

/// Sums of a run, for [`Report::of`].
pub(crate) struct Totals<'a> {
    pub(crate) tallies: &'a Tallies,
    pub(crate) first_arrival_ns: Nanos,
    pub(crate) end_ns: Nanos,
    pub(crate) busy_ns: Nanos,
    pub(crate) written: Written,
    pub(crate) cpu_ns: u64,
    pub(crate) compared: Option<Comparison>,
}

impl Report {
    /// `None` if there was no request.
    pub(crate) fn of(totals: &Totals<'_>) -> Option<Self> {
        let all = totals.tallies.total();
        let elapsed_ns = totals.end_ns - totals.first_arrival_ns;
        let virtual_s = elapsed_ns as f64 / 1e9;
        let cpu_s = totals.cpu_ns as f64 / 1e9;
        Some(Self {
            latency: all.latency()?,
            virtual_s,
            iops: share(totals.tallies.transfers() as f64, virtual_s),
            mb_per_s: share(all.bytes() as f64 / BYTES_PER_MB, virtual_s),
            busy_share: share(totals.busy_ns as f64, elapsed_ns as f64),
            host_sectors: totals.written.host_sectors,
            medium_sectors: totals.written.medium_sectors,
            write_amplification: totals.written.amplification(),
            erases: totals.written.erases,
            cpu_s,
            requests_per_cpu_s: share(all.count() as f64, cpu_s),
            ops: by_op(totals.tallies, virtual_s),
            compared: totals.compared,
            end_ns: totals.end_ns,
        })
    }
}

fn by_op(tallies: &Tallies, virtual_s: f64) -> BTreeMap<&'static str, OpReport> {
    let report = |tally: &Tally| {
        tally.latency().map(|latency| OpReport {
            per_second: share(latency.count as f64, virtual_s),
            mb_per_s: share(tally.bytes() as f64 / BYTES_PER_MB, virtual_s),
            latency,
        })
    };
    let named = tallies.by_op();
    named
        .filter_map(|(name, tally)| Some((name, report(tally)?)))
        .collect()
}

/// `part / whole`, or 0 where no time passed: a device whose times are all 0 has no rate.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
