//! Decision-support tables and refresh sets for Python.

use std::path::PathBuf;

use pyo3::prelude::*;
use tierwise_tpch::{TpchError, TpchRowSource, TpchTable, release_text_pool, write_table_part};

use crate::convert::tierwise_error;

const FIX: &str = "see docs/reference/dss.md for the tables and sizes there are";

/// Names of a table's columns, in order.
#[pyfunction]
pub fn tpch_columns(py: Python<'_>, table: &str) -> PyResult<Vec<&'static str>> {
    let table = TpchTable::named(table).map_err(|error| tpch_error(py, &error))?;
    let columns = table.columns();
    Ok(columns.iter().map(|column| column.name).collect())
}

/// Number of rows of a table, or of its refresh sets; about that of lineitem.
#[pyfunction]
#[pyo3(signature = (table, scale_factor, refresh_sets=None))]
pub fn tpch_rows(
    py: Python<'_>,
    table: &str,
    scale_factor: f64,
    refresh_sets: Option<u32>,
) -> PyResult<u64> {
    let source =
        row_source(table, scale_factor, refresh_sets).map_err(|error| tpch_error(py, &error))?;
    Ok(source.rows())
}

/// First and last key that the refresh pair `set` inserts, and the first and last that it deletes.
#[pyfunction]
pub fn tpch_refresh_keys(
    py: Python<'_>,
    scale_factor: f64,
    set: u32,
) -> PyResult<(i64, i64, i64, i64)> {
    let keys = TpchRowSource::table(TpchTable::Orders, scale_factor)
        .and_then(|source| source.refresh_keys(set));
    let keys = keys.map_err(|error| tpch_error(py, &error))?;
    Ok((
        *keys.inserted.start(),
        *keys.inserted.end(),
        *keys.deleted.start(),
        *keys.deleted.end(),
    ))
}

/// Write one of `parts` parts of a table, or of its refresh sets, as lines of fields separated by `|`; the number of
/// rows written.
#[pyfunction]
#[pyo3(signature = (table, scale_factor, part, parts, path, refresh_sets=None))]
pub fn write_tpch(
    py: Python<'_>,
    table: &str,
    scale_factor: f64,
    part: u32,
    parts: u32,
    path: PathBuf,
    refresh_sets: Option<u32>,
) -> PyResult<u64> {
    let written = py.detach(|| {
        write_table_part(
            row_source(table, scale_factor, refresh_sets)?,
            part,
            parts,
            &path,
        )
    });
    written.map_err(|error| tpch_error(py, &error))
}

/// Free the memory that is kept from one table to the next.
#[pyfunction]
pub fn release_tpch_text() {
    release_text_pool();
}

fn row_source(
    table: &str,
    scale_factor: f64,
    refresh_sets: Option<u32>,
) -> Result<TpchRowSource, TpchError> {
    let table = TpchTable::named(table)?;
    match refresh_sets {
        None => TpchRowSource::table(table, scale_factor),
        Some(sets) => TpchRowSource::refresh(table, scale_factor, sets),
    }
}

fn tpch_error(py: Python<'_>, error: &TpchError) -> PyErr {
    tierwise_error(py, error, FIX)
}
