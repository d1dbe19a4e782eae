//! Results of a simulation.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tierwise_device::{Nanos, Op, Request, SECTOR_BYTES, WrittenSectors};
use tierwise_latency::{LatencyHistogram, LatencyPercentiles};

use crate::UserError;

const BYTES_PER_MB: f64 = 1e6;

/// Figures of one kind of request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpReport {
    /// Number and service times: from arrival to completion.
    #[serde(flatten)]
    pub latency: LatencyPercentiles,
    /// Requests per second of virtual time.
    pub per_second: f64,
    /// 10^6 bytes per second of virtual time.
    pub mb_per_s: f64,
}

/// Figures of a whole simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimulationReport {
    /// Number and service times of all requests: from arrival to completion.
    #[serde(flatten)]
    pub latency: LatencyPercentiles,
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
    pub compared: Option<MeasurementComparison>,
    /// Virtual time of the last completion, in nanoseconds.
    #[serde(skip)]
    pub end_ns: Nanos,
}

/// Sums of a run, for [`SimulationReport::of`].
pub(crate) struct RunTotals<'a> {
    pub(crate) tallies: &'a OpTallies,
    pub(crate) first_arrival_ns: Nanos,
    pub(crate) end_ns: Nanos,
    pub(crate) busy_ns: Nanos,
    pub(crate) written: WrittenSectors,
    pub(crate) cpu_ns: u64,
    pub(crate) compared: Option<MeasurementComparison>,
}

impl SimulationReport {
    /// `None` if there was no request.
    pub(crate) fn of(totals: &RunTotals<'_>) -> Option<Self> {
        let all = totals.tallies.total();
        let elapsed_ns = totals.end_ns - totals.first_arrival_ns;
        let virtual_s = elapsed_ns as f64 / 1e9;
        let cpu_s = totals.cpu_ns as f64 / 1e9;
        Some(Self {
            latency: all.latency()?,
            virtual_s,
            iops: ratio_or_zero(totals.tallies.transfer_count() as f64, virtual_s),
            mb_per_s: ratio_or_zero(all.bytes() as f64 / BYTES_PER_MB, virtual_s),
            busy_share: ratio_or_zero(totals.busy_ns as f64, elapsed_ns as f64),
            host_sectors: totals.written.host_sectors,
            medium_sectors: totals.written.medium_sectors,
            write_amplification: totals.written.amplification(),
            erases: totals.written.erases,
            cpu_s,
            requests_per_cpu_s: ratio_or_zero(all.count() as f64, cpu_s),
            ops: tallies_by_op(totals.tallies, virtual_s),
            compared: totals.compared,
            end_ns: totals.end_ns,
        })
    }
}

fn tallies_by_op(tallies: &OpTallies, virtual_s: f64) -> BTreeMap<&'static str, OpReport> {
    let report = |tally: &OpTally| {
        tally.latency().map(|latency| OpReport {
            per_second: ratio_or_zero(latency.count as f64, virtual_s),
            mb_per_s: ratio_or_zero(tally.bytes() as f64 / BYTES_PER_MB, virtual_s),
            latency,
        })
    };
    let named = tallies.by_op();
    named
        .filter_map(|(name, tally)| Some((name, report(tally)?)))
        .collect()
}

/// `part / whole`, or 0 where no time passed: a device whose times are all 0 has no rate.
fn ratio_or_zero(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

// Completed requests, by kind.

/// The kinds of requests, in the order of reports.
pub(crate) const OPS: [(Op, &str); 4] = [
    (Op::Read, "read"),
    (Op::Write, "write"),
    (Op::Flush, "flush"),
    (Op::Discard, "discard"),
];

/// Times and bytes of one kind of request, or of all.
#[derive(Clone, Debug)]
pub(crate) struct OpTally {
    times: LatencyHistogram,
    sum_ns: u128,
    bytes: u64,
}

impl OpTally {
    fn new() -> Self {
        Self {
            times: LatencyHistogram::new(),
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
    pub(crate) fn latency(&self) -> Option<LatencyPercentiles> {
        self.times.summary().map(|latency| LatencyPercentiles {
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
pub(crate) struct OpTallies([OpTally; OPS.len()]);

impl OpTallies {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| OpTally::new()))
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
    pub(crate) fn by_op(&self) -> impl Iterator<Item = (&'static str, &OpTally)> {
        let named = OPS.iter().map(|(_, name)| *name).zip(&self.0);
        named.filter(|(_, tally)| tally.count() > 0)
    }

    /// All kinds together.
    pub(crate) fn total(&self) -> OpTally {
        let mut total = OpTally::new();
        self.0.iter().for_each(|tally| total.merge(tally));
        total
    }

    /// Number of requests that transferred data.
    pub(crate) fn transfer_count(&self) -> u64 {
        self.0[0].count() + self.0[1].count()
    }
}

// The service time of each request, as a CSV file in the order of the requests.

#[derive(Clone, Copy, Debug)]
struct TimesRow {
    request: Request,
    arrival_ns: Nanos,
    service_ns: Nanos,
}

/// Writes `op,lbn,sectors,arrival_us,service_us`. Keeps only requests that completed before an earlier one
/// did.
#[derive(Debug)]
pub struct ServiceTimesFile {
    path: PathBuf,
    writer: BufWriter<File>,
    rows: VecDeque<Option<TimesRow>>,
    first: u64,
}

impl ServiceTimesFile {
    /// Creates the file, or empties it.
    ///
    /// # Errors
    /// A path that cannot be written.
    pub fn create(path: &Path) -> Result<Self, UserError> {
        let file = File::create(path).map_err(|error| unwritable_file_error(path, &error))?;
        let mut writer = BufWriter::new(file);
        writeln!(writer, "op,lbn,sectors,arrival_us,service_us")
            .map_err(|error| unwritable_file_error(path, &error))?;
        Ok(Self {
            path: path.to_owned(),
            writer,
            rows: VecDeque::new(),
            first: 0,
        })
    }

    /// Takes the times of request `number`, counted from 0.
    pub(crate) fn record(
        &mut self,
        number: u64,
        request: Request,
        arrival_ns: Nanos,
        service_ns: Nanos,
    ) {
        let index = (number - self.first) as usize;
        if index >= self.rows.len() {
            self.rows.resize(index + 1, None);
        }
        self.rows[index] = Some(TimesRow {
            request,
            arrival_ns,
            service_ns,
        });
    }

    /// Writes the times up to the first request that is not complete.
    pub(crate) fn write_complete(&mut self) -> Result<(), UserError> {
        while let Some(&Some(row)) = self.rows.front() {
            self.write(&row)
                .map_err(|error| unwritable_file_error(&self.path, &error))?;
            self.rows.pop_front();
            self.first += 1;
        }
        Ok(())
    }

    /// Writes the rest and hands it to the system.
    pub(crate) fn finish(&mut self) -> Result<(), UserError> {
        self.write_complete()?;
        self.writer
            .flush()
            .map_err(|error| unwritable_file_error(&self.path, &error))
    }

    fn write(&mut self, row: &TimesRow) -> std::io::Result<()> {
        let op = match row.request.op {
            Op::Read => 'R',
            Op::Write => 'W',
            Op::Flush => 'F',
            Op::Discard => 'D',
        };
        writeln!(
            self.writer,
            "{op},{},{},{:.3},{:.3}",
            row.request.sector,
            row.request.sectors,
            row.arrival_ns as f64 / 1e3,
            row.service_ns as f64 / 1e3
        )
    }
}

fn unwritable_file_error(file: &Path, error: &dyn std::fmt::Display) -> UserError {
    UserError::new(
        format!("cannot write {}: {error}", file.display()),
        "give --times a file in a writable directory with room",
    )
}

// Service times of the model compared with those measured for the same requests.

/// The model's error against the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeasurementComparison {
    /// Mean of the measured service times, in microseconds.
    pub measured_mean_us: f64,
    /// Mean of the model's, in microseconds.
    pub model_mean_us: f64,
    /// Root mean square horizontal distance between the two distributions, as a share of the measured mean:
    /// the demerit figure of Ruemmler and Wilkes, IEEE Computer 27(3), 1994.
    pub demerit: f64,
    /// Root mean square difference request by request, as a share of the measured mean.
    pub each: f64,
}

/// Pairs of service times, measured and modelled.
#[derive(Debug, Default)]
pub(crate) struct ServiceTimePairs {
    measured: Vec<Nanos>,
    model: Vec<Nanos>,
}

impl ServiceTimePairs {
    pub(crate) fn record(&mut self, measured_ns: Nanos, model_ns: Nanos) {
        self.measured.push(measured_ns);
        self.model.push(model_ns);
    }

    /// The comparison, or `None` without pairs or if every measured time is 0.
    pub(crate) fn comparison(&mut self) -> Option<MeasurementComparison> {
        let measured_mean_ns = mean(&self.measured);
        if self.measured.is_empty() || measured_mean_ns == 0.0 {
            return None;
        }
        let each = rms_distance_share(&self.measured, &self.model);
        Some(MeasurementComparison {
            measured_mean_us: measured_mean_ns / 1e3,
            model_mean_us: mean(&self.model) / 1e3,
            demerit: demerit_figure(&mut self.measured, &mut self.model),
            each,
        })
    }
}

/// The demerit figure of two equally long lists of times, neither empty; sorts both.
pub fn demerit_figure(measured: &mut [Nanos], model: &mut [Nanos]) -> f64 {
    measured.sort_unstable();
    model.sort_unstable();
    rms_distance_share(measured, model)
}

/// Root mean square difference, pair by pair, as a share of the first's mean.
fn rms_distance_share(measured: &[Nanos], model: &[Nanos]) -> f64 {
    let squares = measured
        .iter()
        .zip(model)
        .map(|(&one, &other)| (one as f64 - other as f64).powi(2));
    (squares.sum::<f64>() / measured.len() as f64).sqrt() / mean(measured)
}

fn mean(times: &[Nanos]) -> f64 {
    times.iter().map(|&time| time as f64).sum::<f64>() / times.len() as f64
}
