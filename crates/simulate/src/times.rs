//! The service time of each request, as a CSV file in the order of the requests.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

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
