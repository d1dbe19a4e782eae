//! Errors in a request for rows.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::keys::SETS_MAX;
use crate::table::{SCALE_FACTOR_MAX, SCALE_FACTOR_MIN, Table};

/// Why there are no rows.
#[derive(Debug, Error)]
pub enum TpchError {
    /// No such table.
    #[error("unknown table {name:?}; use one of {}", known_tables())]
    UnknownTable {
        /// As it was given.
        name: String,
    },
    /// The tables make no sense at that size.
    #[error("scale factor {0} is not between {SCALE_FACTOR_MIN} and {SCALE_FACTOR_MAX}")]
    ScaleFactor(f64),
    /// Only orders and their items are refreshed.
    #[error("table {} has no refresh sets; orders and lineitem have", .0.name())]
    NotRefreshed(Table),
    /// There are no orders left to delete.
    #[error("{0} refresh sets are more than {SETS_MAX}, after which all first orders are gone")]
    Sets(u32),
    /// A piece that is not there.
    #[error("part {part} of {parts}: parts are numbered from 1")]
    Part {
        /// Asked for.
        part: u32,
        /// There are.
        parts: u32,
    },
    /// A file could not be written.
    #[error("{path}: {source}")]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

fn known_tables() -> String {
    let names: Vec<_> = Table::ALL.iter().map(|table| table.name()).collect();
    names.join(", ")
}
