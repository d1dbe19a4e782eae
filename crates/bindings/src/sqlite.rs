//! The SQLite database that an engine's worker keeps open.

use pyo3::prelude::*;
use serde_json::Value as Json;
use tierwise_load::Failure;
use tierwise_sqlite::{Address, Database, Value};

use crate::convert::{json, user_error};

/// An open database, whose files are where its address says.
#[pyclass(frozen, name = "SqliteDatabase", module = "tierwise._core")]
pub struct PySqliteDatabase(Database);

#[pymethods]
impl PySqliteDatabase {
    #[new]
    fn new(py: Python<'_>, address: &str) -> PyResult<Self> {
        let address =
            Address::parse(address).map_err(|error| user_error(py, &error, error.fix()))?;
        let opened = py.detach(|| Database::open(&address));
        opened.map(Self).map_err(|failure| refused(py, failure))
    }

    /// Run one statement; returns its rows as JSON.
    fn query(&self, py: Python<'_>, sql: &str) -> PyResult<String> {
        let rows = py
            .detach(|| self.0.query(sql))
            .map_err(|failure| refused(py, failure))?;
        let row = |row: Vec<Value>| row.into_iter().map(cell).collect::<Vec<_>>();
        json(&rows.into_iter().map(row).collect::<Vec<_>>())
    }

    /// Write the write-ahead log into the database file.
    fn checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.checkpoint())
            .map_err(|failure| refused(py, failure))
    }

    /// Requests by kind of file, and the counts of the caches, as JSON.
    fn counts(&self) -> PyResult<String> {
        json(self.0.counts())
    }

    /// The last request that the operating system refused.
    fn refused(&self) -> Option<String> {
        self.0.refused()
    }

    /// Close it.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}

/// Version of the SQLite in this module.
#[pyfunction]
pub fn sqlite_version() -> &'static str {
    tierwise_sqlite::version()
}

fn cell(value: Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Integer(number) => number.into(),
        Value::Real(number) => number.into(),
        Value::Text(text) => text.into(),
        Value::Blob(bytes) => bytes.into(),
    }
}

fn refused(py: Python<'_>, failure: Failure) -> PyErr {
    let raised = py.import("tierwise.model.errors").and_then(|module| {
        let kind = module.getattr("StatementError")?;
        kind.call1((failure.message, failure.retry, failure.capped))
    });
    raised.map_or_else(|broken| broken, PyErr::from_value)
}
