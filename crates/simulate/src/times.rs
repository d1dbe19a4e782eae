//! The service time of each request, as a CSV file in the order of the requests.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tierwise_device::{Nanos, Op, Request};

use crate::UserError;

#[derive(Clone, Copy, Debug)]
struct Row {
    request: Request,
    arrival_ns: Nanos,
    service_ns: Nanos,
}

/// Writes `op,lbn,sectors,arrival_us,service_us`. Keeps only requests that completed before an earlier one
/// did.
#[derive(Debug)]
pub struct TimesFile {
    path: PathBuf,
    writer: BufWriter<File>,
    rows: VecDeque<Option<Row>>,
    first: u64,
}

impl TimesFile {
    /// Creates the file, or empties it.
    ///
    /// # Errors
    /// A path that cannot be written.
    pub fn create(path: &Path) -> Result<Self, UserError> {
        let file = File::create(path).map_err(|error| unwritable(path, &error))?;
        let mut writer = BufWriter::new(file);
        writeln!(writer, "op,lbn,sectors,arrival_us,service_us")
            .map_err(|error| unwritable(path, &error))?;
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
        self.rows[index] = Some(Row {
            request,
            arrival_ns,
            service_ns,
        });
    }

    /// Writes the times up to the first request that is not complete.
    pub(crate) fn write_complete(&mut self) -> Result<(), UserError> {
        while let Some(&Some(row)) = self.rows.front() {
            self.write(&row)
                .map_err(|error| unwritable(&self.path, &error))?;
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
            .map_err(|error| unwritable(&self.path, &error))
    }

    fn write(&mut self, row: &Row) -> std::io::Result<()> {
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

fn unwritable(file: &Path, error: &dyn std::fmt::Display) -> UserError {
    UserError::new(
        format!("cannot write {}: {error}", file.display()),
        "give --times a file in a writable directory with room",
    )
}

// Service times of the model compared with those measured for the same requests.

/// The model's error against the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
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
pub(crate) struct Pairs {
    measured: Vec<Nanos>,
    model: Vec<Nanos>,
}

impl Pairs {
    pub(crate) fn record(&mut self, measured_ns: Nanos, model_ns: Nanos) {
        self.measured.push(measured_ns);
        self.model.push(model_ns);
    }

    /// The comparison, or `None` without pairs or if every measured time is 0.
    pub(crate) fn comparison(&mut self) -> Option<Comparison> {
        let measured_mean_ns = mean(&self.measured);
        if self.measured.is_empty() || measured_mean_ns == 0.0 {
            return None;
        }
        let each = distance(&self.measured, &self.model);
        Some(Comparison {
            measured_mean_us: measured_mean_ns / 1e3,
            model_mean_us: mean(&self.model) / 1e3,
            demerit: demerit(&mut self.measured, &mut self.model),
            each,
        })
    }
}

/// The demerit figure of two equally long lists of times, neither empty; sorts both.
pub fn demerit(measured: &mut [Nanos], model: &mut [Nanos]) -> f64 {
    measured.sort_unstable();
    model.sort_unstable();
    distance(measured, model)
}

/// Root mean square difference, pair by pair, as a share of the first's mean.
fn distance(measured: &[Nanos], model: &[Nanos]) -> f64 {
    let squares = measured
        .iter()
        .zip(model)
        .map(|(&one, &other)| (one as f64 - other as f64).powi(2));
    (squares.sum::<f64>() / measured.len() as f64).sqrt() / mean(measured)
}

fn mean(times: &[Nanos]) -> f64 {
    times.iter().map(|&time| time as f64).sum::<f64>() / times.len() as f64
}
