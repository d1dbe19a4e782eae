//! Requests from a CSV file, plain or compressed with gzip, line by line.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use csv::ByteRecord;
use flate2::bufread::MultiGzDecoder;
use tierwise_device::{Nanos, Op, Request};
use tierwise_input::Links;

use crate::{RequestSource, TimedRequest, UserError};

const HEADER: &str = "begin with op,lbn,sectors[,think_ms][,arrival_us]; op is R, W, F or D";
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const BUFFER_BYTES: usize = 1 << 16;
const LONGEST_LINE_BYTES: usize = 1 << 20;

/// The requests of a file.
pub struct RequestFile {
    file: PathBuf,
    reader: csv::Reader<Box<dyn Read>>,
    record: ByteRecord,
    /// Position of each column in the file; the kind of request first, because it decides how the sector is
    /// read.
    columns: Vec<(usize, RequestColumn)>,
    capacity_sectors: u64,
    last_arrival_ns: Nanos,
    requests: u64,
}

impl RequestFile {
    /// Opens a file of requests to a device of this size and reads its first line.
    ///
    /// # Errors
    /// A file that cannot be read, is empty, or whose columns are not those of [`RequestColumn`].
    pub fn open(file: &Path, capacity_sectors: u64) -> Result<Self, UserError> {
        let content = decompressed(file).map_err(|error| unreadable_file_error(file, &error))?;
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .trim(csv::Trim::All)
            .terminator(csv::Terminator::Any(b'\n'))
            // Every line then ends, and a record's line is the one before the reader's.
            .from_reader(Box::new(content.chain(&b"\n"[..])) as Box<dyn Read>);
        let header = reader
            .byte_headers()
            .map_err(|error| unreadable_file_error(file, &error))?
            .clone();
        let columns = parse_columns(&header).map_err(|message| {
            UserError::new(format!("{}, line 1: {message}", file.display()), HEADER)
        })?;
        Ok(Self {
            file: file.to_owned(),
            reader,
            record: ByteRecord::new(),
            columns,
            capacity_sectors,
            last_arrival_ns: 0,
            requests: 0,
        })
    }

    /// Whether the file has this column.
    pub fn has(&self, column: RequestColumn) -> bool {
        self.columns.iter().any(|&(_, own)| own == column)
    }

    /// Reads the next line that is not blank; returns whether there was one.
    fn read_line(&mut self) -> Result<bool, UserError> {
        loop {
            let is_there = self
                .reader
                .read_byte_record(&mut self.record)
                .map_err(|error| unreadable_file_error(&self.file, &error))?;
            let is_blank = self.record.len() == 1 && self.record[0].is_empty();
            if !(is_there && is_blank) {
                return Ok(is_there);
            }
        }
    }

    fn parse(&mut self) -> Result<TimedRequest, UserError> {
        if self.record.len() != self.columns.len() {
            let message = format!(
                "{} fields, where the first line has {}",
                self.record.len(),
                self.columns.len()
            );
            return Err(self.wrong(None, &message, "give each line a field for each column"));
        }
        let mut line = RequestLine::default();
        for &(index, column) in &self.columns {
            let text = std::str::from_utf8(&self.record[index]).unwrap_or("\u{fffd}");
            line.set(column, text).map_err(|(what, fix)| {
                self.wrong(Some(column), &format!("{text:?} {what}"), fix)
            })?;
        }
        self.check_extent(&line.asked.request)?;
        if line.asked.arrival_ns < self.last_arrival_ns {
            let message = format!(
                "{} is earlier than {} on the line before",
                line.asked.arrival_ns as f64 / 1e3,
                self.last_arrival_ns as f64 / 1e3
            );
            return Err(self.wrong(
                Some(RequestColumn::ArrivalUs),
                &message,
                "sort the file by arrival_us",
            ));
        }
        self.last_arrival_ns = line.asked.arrival_ns;
        Ok(line.asked)
    }

    fn check_extent(&self, request: &Request) -> Result<(), UserError> {
        if request.op == Op::Flush {
            return Ok(());
        }
        if request.sectors == 0 {
            return Err(self.wrong(Some(RequestColumn::Sectors), "0 sectors", "give at least 1"));
        }
        let end = request.sector.saturating_add(u64::from(request.sectors));
        if end > self.capacity_sectors {
            let message = format!("sectors {} to {} lie past the end", request.sector, end - 1);
            let fix = format!(
                "the device has {} sectors, from 0 on",
                self.capacity_sectors
            );
            return Err(self.wrong(Some(RequestColumn::Lbn), &message, &fix));
        }
        Ok(())
    }

    fn wrong(&self, column: Option<RequestColumn>, message: &str, fix: &str) -> UserError {
        let line = self.reader.position().line() - 1;
        let column = column.map_or(String::new(), |column| {
            format!(", column {}", column.name())
        });
        UserError::new(
            format!("{}, line {line}{column}: {message}", self.file.display()),
            fix,
        )
    }
}

impl RequestSource for RequestFile {
    fn next(&mut self) -> Result<Option<TimedRequest>, UserError> {
        if self.read_line()? {
            self.requests += 1;
            return self.parse().map(Some);
        }
        if self.requests == 0 {
            let message = format!(
                "{} has no request below its first line",
                self.file.display()
            );
            return Err(UserError::new(message, "add one request a line"));
        }
        Ok(None)
    }
}

/// A line while it is read. A flush may leave its sectors empty or give any.
struct RequestLine {
    asked: TimedRequest,
}

impl Default for RequestLine {
    fn default() -> Self {
        Self {
            asked: TimedRequest {
                request: Request::new(Op::Read, 0, 0),
                think_ns: 0,
                arrival_ns: 0,
                measured_ns: None,
            },
        }
    }
}

impl RequestLine {
    fn set(&mut self, column: RequestColumn, text: &str) -> Result<(), ValueFault> {
        let asked = &mut self.asked;
        match column {
            RequestColumn::Op => asked.request.op = parse_op(text)?,
            RequestColumn::Lbn | RequestColumn::Sectors
                if asked.request.op == Op::Flush && text.is_empty() => {}
            RequestColumn::Lbn => asked.request.sector = parse_whole_number(text)?,
            RequestColumn::Sectors => asked.request.sectors = parse_whole_number(text)?,
            RequestColumn::ThinkMs | RequestColumn::InterarrivalUs => {
                asked.think_ns = parse_time_ns(column, text)?
            }
            RequestColumn::ArrivalUs => asked.arrival_ns = parse_time_ns(column, text)?,
            RequestColumn::ServiceUs => asked.measured_ns = Some(parse_time_ns(column, text)?),
        }
        Ok(())
    }
}

fn parse_op(text: &str) -> Result<Op, ValueFault> {
    match text {
        "R" => Ok(Op::Read),
        "W" => Ok(Op::Write),
        "F" => Ok(Op::Flush),
        "D" => Ok(Op::Discard),
        _ => Err(("is not known", "use R, W, F or D")),
    }
}

fn parse_columns(header: &ByteRecord) -> Result<Vec<(usize, RequestColumn)>, String> {
    if header.is_empty() {
        return Err("the file is empty".into());
    }
    let mut columns: Vec<RequestColumn> = Vec::with_capacity(header.len());
    for name in header {
        let name = String::from_utf8_lossy(name);
        let column = RequestColumn::of(&name).ok_or_else(|| format!("unknown column {name:?}"))?;
        if columns.contains(&column) {
            return Err(format!("column {name} stands there twice"));
        }
        columns.push(column);
    }
    if columns.contains(&RequestColumn::ThinkMs) && columns.contains(&RequestColumn::InterarrivalUs)
    {
        return Err("think_ms and interarrival_us say the same twice".into());
    }
    match RequestColumn::ALL
        .iter()
        .find(|column| column.is_required() && !columns.contains(column))
    {
        Some(missing) => Err(format!("no column {}", missing.name())),
        None => Ok(starts_with_op(columns)),
    }
}

fn starts_with_op(columns: Vec<RequestColumn>) -> Vec<(usize, RequestColumn)> {
    let mut placed: Vec<_> = columns.into_iter().enumerate().collect();
    placed.sort_by_key(|&(_, column)| column != RequestColumn::Op);
    placed
}

/// A reader that fails at a line longer than any request: a damaged or hostile file would fill the memory.
struct LineLengthLimit<R> {
    inner: R,
    line_bytes: usize,
}

impl<R: Read> Read for LineLengthLimit<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.line_bytes = match buffer[..read].iter().rposition(|&byte| byte == b'\n') {
            Some(last) => read - last - 1,
            None => self.line_bytes + read,
        };
        match self.line_bytes > LONGEST_LINE_BYTES {
            true => Err(std::io::Error::other(format!(
                "a line is longer than {LONGEST_LINE_BYTES} bytes"
            ))),
            false => Ok(read),
        }
    }
}

fn decompressed(file: &Path) -> std::io::Result<Box<dyn Read>> {
    let file = tierwise_input::open(file, Links::Follow)?;
    let mut content = BufReader::with_capacity(BUFFER_BYTES, file);
    let inner: Box<dyn Read> = if content.fill_buf()?.starts_with(&GZIP_MAGIC) {
        Box::new(MultiGzDecoder::new(content))
    } else {
        Box::new(content)
    };
    Ok(Box::new(LineLengthLimit {
        inner,
        line_bytes: 0,
    }))
}

fn unreadable_file_error(file: &Path, error: &dyn std::fmt::Display) -> UserError {
    UserError::new(
        format!("cannot read {}: {error}", file.display()),
        "give a readable CSV file, or one compressed with gzip",
    )
}

// The columns that a file of requests may have, and how their values are read.

/// Longest time that a file may name, in nanoseconds: some 30 years, so that sums of times fit.
const LONGEST_NS: f64 = 1e18;

/// A column of a file of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestColumn {
    /// `R`ead, `W`rite, `F`lush or `D`iscard.
    Op,
    /// First sector, of 512 bytes; of no meaning for a flush.
    Lbn,
    /// Length in sectors; of no meaning for a flush.
    Sectors,
    /// Between the completion and the next request of the same client, in milliseconds.
    ThinkMs,
    /// The same in microseconds, as in the measurements that DiskSim was validated with.
    InterarrivalUs,
    /// When the request arrives in an open loop, in microseconds; never earlier than the one before.
    ArrivalUs,
    /// The service time that was measured, in microseconds, to compare the model's with.
    ServiceUs,
}

impl RequestColumn {
    /// All of them; the first three are required.
    pub const ALL: [Self; 7] = [
        Self::Op,
        Self::Lbn,
        Self::Sectors,
        Self::ThinkMs,
        Self::InterarrivalUs,
        Self::ArrivalUs,
        Self::ServiceUs,
    ];

    /// Its name in the first line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Op => "op",
            Self::Lbn => "lbn",
            Self::Sectors => "sectors",
            Self::ThinkMs => "think_ms",
            Self::InterarrivalUs => "interarrival_us",
            Self::ArrivalUs => "arrival_us",
            Self::ServiceUs => "service_us",
        }
    }

    /// Whether a file must have it.
    pub const fn is_required(self) -> bool {
        matches!(self, Self::Op | Self::Lbn | Self::Sectors)
    }

    /// Nanoseconds in one of its units.
    const fn unit_ns(self) -> f64 {
        match self {
            Self::ThinkMs => 1e6,
            _ => 1e3,
        }
    }

    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name)
    }
}

/// The fault of a value, as a text to follow it, and its fix.
pub(crate) type ValueFault = (&'static str, &'static str);

/// Reads a whole number that is not negative.
pub(crate) fn parse_whole_number<T: FromStr>(text: &str) -> Result<T, ValueFault> {
    text.parse().map_err(|_| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        match (is_number, text.starts_with('-')) {
            (true, true) => ("is negative", "give a number from 0 on"),
            (true, false) => ("is too large", "give a smaller number"),
            _ => ("is not a whole number", "give a whole number from 0 on"),
        }
    })
}

/// Reads a time in the unit of its column, as nanoseconds.
pub(crate) fn parse_time_ns(column: RequestColumn, text: &str) -> Result<Nanos, ValueFault> {
    let value: f64 = text
        .parse()
        .map_err(|_| ("is not a number", "give a time from 0 on"))?;
    let ns = value * column.unit_ns();
    if ns.is_nan() {
        return Err(("is not a number", "give a time from 0 on"));
    }
    if ns < 0.0 {
        return Err(("is negative", "give a time from 0 on"));
    }
    if ns > LONGEST_NS {
        return Err(("is too large", "give a shorter time"));
    }
    Ok(ns.round() as Nanos)
}
