//! A request for rows: a table, or its refresh sets, at one size.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::lines::Lines;
use crate::table::{RefreshKeys, SCALE_FACTOR_MAX, SCALE_FACTOR_MIN, SETS_MAX, Table};

/// Rows that the generator counts by and makes at a time: half a megabyte of text.
const BATCH_ROWS: u64 = 1000;

/// A table at one scale factor, or the rows that refresh sets will insert into it.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    pub(crate) table: Table,
    pub(crate) scale_factor: f64,
    pub(crate) refresh_sets: Option<u32>,
}

impl Source {
    /// The rows that are loaded.
    ///
    /// # Errors
    /// If the scale factor is not between 0.001 and 1000.
    pub fn table(table: Table, scale_factor: f64) -> Result<Self, TpchError> {
        if !(SCALE_FACTOR_MIN..=SCALE_FACTOR_MAX).contains(&scale_factor) {
            return Err(TpchError::ScaleFactor(scale_factor));
        }
        Ok(Self {
            table,
            scale_factor,
            refresh_sets: None,
        })
    }

    /// The rows that the first `sets` refresh sets insert.
    ///
    /// # Errors
    /// If the table is not refreshed, or not that often.
    pub fn refresh(table: Table, scale_factor: f64, sets: u32) -> Result<Self, TpchError> {
        let source = Self::table(table, scale_factor)?;
        if !matches!(table, Table::Orders | Table::LineItem) {
            return Err(TpchError::NotRefreshed(table));
        }
        if !(1..=SETS_MAX).contains(&sets) {
            return Err(TpchError::Sets(sets));
        }
        Ok(Self {
            refresh_sets: Some(sets),
            ..source
        })
    }

    /// Which table.
    pub fn of(&self) -> Table {
        self.table
    }

    /// Number of rows; about that of lineitem, whose orders have 1 to 7.
    pub fn rows(&self) -> u64 {
        let counted = match self.refresh_sets {
            None => self.table.counted_rows(self.scale_factor),
            Some(sets) => u64::from(sets) * self.refreshed_orders(),
        };
        counted * self.table.rows_each()
    }

    /// Orders that each refresh set inserts and deletes: 1500 a scale factor (clause 2.5.2).
    pub fn refreshed_orders(&self) -> u64 {
        Table::Orders.counted_rows(self.scale_factor) / u64::from(SETS_MAX)
    }

    /// The keys that the refresh pair `set`, counted from 1, inserts and deletes.
    ///
    /// # Errors
    /// If there is no such pair.
    pub fn refresh_keys(&self, set: u32) -> Result<RefreshKeys, TpchError> {
        if !(1..=SETS_MAX).contains(&set) {
            return Err(TpchError::Sets(set));
        }
        Ok(RefreshKeys::new(set, self.refreshed_orders()))
    }

    /// The text of one of `parts` parts; all parts together are the table, whatever their number.
    ///
    /// # Errors
    /// If there is no such part.
    pub fn lines(&self, part: u32, parts: u32) -> Result<Lines, TpchError> {
        if !(1..=parts).contains(&part) {
            return Err(TpchError::Part { part, parts });
        }
        let batches = self.batches();
        let bound = |part: u32| (u64::from(batches) * u64::from(part) / u64::from(parts)) as u32;
        Ok(Lines::new(*self, bound(part - 1)..bound(part)))
    }

    /// Pieces that rows are made in.
    pub(crate) fn batches(&self) -> u32 {
        let batches = match (self.refresh_sets, self.table) {
            (Some(sets), _) => u64::from(sets),
            (None, Table::Region | Table::Nation) => 1,
            (None, table) => table.counted_rows(self.scale_factor).div_ceil(BATCH_ROWS),
        };
        batches.max(1) as u32
    }
}

// Errors in a request for rows.

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
