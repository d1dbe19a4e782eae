//! The SQLite database that an engine's worker keeps open.

use pyo3::prelude::*;
use serde_json::Value as Json;
use tierwise_load::StatementFailure;
use tierwise_sqlite::{DatabaseAddress, OpenDatabase, Value};

use crate::convert::{tierwise_error, to_json};

/// An open database, whose files are where its address says.
#[pyclass(frozen, name = "SqliteDatabase", module = "tierwise._core")]
pub struct PySqliteDatabase(OpenDatabase);

#[pymethods]
impl PySqliteDatabase {
    #[new]
    fn new(py: Python<'_>, address: &str) -> PyResult<Self> {
        let address = DatabaseAddress::parse(address)
            .map_err(|error| tierwise_error(py, &error, error.fix()))?;
        let opened = py.detach(|| OpenDatabase::open(&address));
        opened
            .map(Self)
            .map_err(|failure| statement_error(py, failure))
    }

    /// Run one statement; returns its rows as JSON.
    fn query(&self, py: Python<'_>, sql: &str) -> PyResult<String> {
        let rows = py
            .detach(|| self.0.query(sql))
            .map_err(|failure| statement_error(py, failure))?;
        let row = |row: Vec<Value>| row.into_iter().map(json_of_value).collect::<Vec<_>>();
        to_json(&rows.into_iter().map(row).collect::<Vec<_>>())
    }

    /// Write the write-ahead log into the database file.
    fn checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.checkpoint())
            .map_err(|failure| statement_error(py, failure))
    }

    /// Requests by kind of file, and the counts of the caches, as JSON.
    fn counts(&self) -> PyResult<String> {
        to_json(self.0.counts())
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

fn json_of_value(value: Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Integer(number) => number.into(),
        Value::Real(number) => number.into(),
        Value::Text(text) => text.into(),
        Value::Blob(bytes) => bytes.into(),
    }
}

fn statement_error(py: Python<'_>, failure: StatementFailure) -> PyErr {
    let raised = py.import("tierwise.model.errors").and_then(|module| {
        let kind = module.getattr("StatementError")?;
        kind.call1((failure.message, failure.retry, failure.capped))
    });
    raised.map_or_else(|broken| broken, PyErr::from_value)
}
