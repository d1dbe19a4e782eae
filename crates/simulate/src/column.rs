//! The columns that a file of requests may have, and how their values are read.

use std::str::FromStr;

use tierwise_device::Nanos;

/// Longest time that a file may name, in nanoseconds: some 30 years, so that sums of times fit.
const LONGEST_NS: f64 = 1e18;

/// A column of a file of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
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

impl Column {
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
pub(crate) type Complaint = (&'static str, &'static str);

/// Reads a whole number that is not negative.
pub(crate) fn whole<T: FromStr>(text: &str) -> Result<T, Complaint> {
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
pub(crate) fn time_ns(column: Column, text: &str) -> Result<Nanos, Complaint> {
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
