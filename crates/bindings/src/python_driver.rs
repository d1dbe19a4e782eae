//! The driver `python`: a Python object is the engine, and holds the interpreter's lock only while it is
//! called. Drawing, timing and counting stay here.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use tierwise_load::sql::StatementTemplate;
use tierwise_load::{
    DrawnValue, EngineClient, EngineConnector, StatementArguments, StatementFailure,
    StatementOutcome, TableRows,
};

/// Rows handed over at a time: enough to be worth a call, few enough to stay small.
const APPEND_ROWS: usize = 10_000;

/// An object with a method `connect`.
pub struct PythonConnector(Py<PyAny>);

impl PythonConnector {
    pub fn new(address: &Bound<'_, PyAny>) -> Self {
        Self(address.clone().unbind())
    }
}

impl EngineConnector for PythonConnector {
    type Client = PythonClient;

    const BLOCKING: bool = true;

    async fn connect(&self) -> Result<PythonClient, StatementFailure> {
        let client = Python::attach(|py| {
            let made = self.0.call_method0(py, "connect");
            made.map_err(|error| failure_of_exception(py, &error))
        })?;
        Ok(PythonClient {
            client,
            places: Vec::new(),
        })
    }
}

/// What `connect` returned.
pub struct PythonClient {
    client: Py<PyAny>,
    /// For each statement, the parameter at each of its marks.
    places: Vec<Vec<usize>>,
}

impl PythonClient {
    fn call<T>(
        &self,
        method: &str,
        arguments: impl FnOnce(Python<'_>) -> PyResult<Bound<'_, PyTuple>>,
    ) -> Result<T, StatementFailure>
    where
        T: for<'a, 'py> FromPyObject<'a, 'py, Error = PyErr>,
    {
        Python::attach(|py| {
            let call = || {
                let client = self.client.bind(py);
                client.call_method1(method, arguments(py)?)?.extract()
            };
            call().map_err(|error: PyErr| failure_of_exception(py, &error))
        })
    }

    fn order(&self, method: &str) -> Result<(), StatementFailure> {
        self.call::<IgnoredReturn>(method, |py| Ok(PyTuple::empty(py)))
            .map(|IgnoredReturn| ())
    }

    fn append_batch(
        &self,
        rows: &TableRows,
        batch: &[Vec<DrawnValue>],
    ) -> Result<u64, StatementFailure> {
        self.call("append", |py| {
            let columns: Vec<_> = rows.columns().collect();
            let tuples = batch.iter().map(|row| to_tuple(py, row.iter()));
            let tuples = PyList::new(py, tuples.collect::<PyResult<Vec<_>>>()?)?;
            (rows.table(), columns, tuples).into_pyobject(py)
        })
    }
}

impl EngineClient for PythonClient {
    async fn prepare(&mut self, statement: &StatementTemplate) -> Result<(), StatementFailure> {
        let places: Vec<_> = statement.places().collect();
        self.call::<IgnoredReturn>("prepare", |py| {
            let names: Vec<_> = places
                .iter()
                .map(|&place| &statement.names()[place])
                .collect();
            (statement.render(|_| "?".to_owned()), names).into_pyobject(py)
        })?;
        self.places.push(places);
        Ok(())
    }

    async fn query_number(&mut self, sql: &str) -> Result<Option<i64>, StatementFailure> {
        self.call("query_number", |py| (sql,).into_pyobject(py))
    }

    async fn begin(&mut self) -> Result<(), StatementFailure> {
        self.order("begin")
    }

    async fn execute(
        &mut self,
        statement: usize,
        arguments: StatementArguments<'_>,
        sum: Option<&str>,
    ) -> Result<StatementOutcome, StatementFailure> {
        let (rows, sum) = self.call("execute", |py| {
            let places = self.places[statement].iter();
            let values = places.map(|&place| arguments.get(place));
            (statement, to_tuple(py, values)?, sum).into_pyobject(py)
        })?;
        Ok(StatementOutcome { rows, sum })
    }

    async fn commit(&mut self) -> Result<(), StatementFailure> {
        self.order("commit")
    }

    async fn rollback(&mut self) -> Result<(), StatementFailure> {
        self.order("rollback")
    }

    async fn append(&mut self, mut rows: TableRows) -> Result<u64, StatementFailure> {
        let mut batch = Vec::with_capacity(APPEND_ROWS);
        let mut appended = 0;
        while let Some(row) = rows.next_row() {
            batch.push(row.to_vec());
            if batch.len() == APPEND_ROWS {
                appended += self.append_batch(&rows, &batch)?;
                batch.clear();
            }
        }
        if !batch.is_empty() {
            appended += self.append_batch(&rows, &batch)?;
        }
        Ok(appended)
    }

    async fn set_cap(&mut self, cap: Option<Duration>) -> Result<(), StatementFailure> {
        let seconds = cap.map(|cap| cap.as_secs_f64());
        self.call::<IgnoredReturn>("set_cap", |py| (seconds,).into_pyobject(py))
            .map(|IgnoredReturn| ())
    }
}

impl Drop for PythonClient {
    fn drop(&mut self) {
        // After the interpreter's end the connection cannot be closed.
        Python::try_attach(|py| {
            if let Err(error) = self.client.call_method0(py, "close") {
                error.write_unraisable(py, Some(self.client.bind(py)));
            }
        });
    }
}

/// Any return value of a method.
struct IgnoredReturn;

impl FromPyObject<'_, '_> for IgnoredReturn {
    type Error = PyErr;

    fn extract(_: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        Ok(Self)
    }
}

fn to_tuple<'py, 'a>(
    py: Python<'py>,
    values: impl ExactSizeIterator<Item = &'a DrawnValue>,
) -> PyResult<Bound<'py, PyTuple>> {
    let objects = values.map(|value| match value {
        DrawnValue::Int(number) => Ok(number.into_pyobject(py)?.into_any()),
        DrawnValue::Float(number) => Ok(number.into_pyobject(py)?.into_any()),
        DrawnValue::Text(text) => Ok(text.into_pyobject(py)?.into_any()),
    });
    PyTuple::new(py, objects.collect::<PyResult<Vec<_>>>()?)
}

/// A `StatementError` unchanged; of any other exception, its type and text.
fn failure_of_exception(py: Python<'_>, error: &PyErr) -> StatementFailure {
    let value = error.value(py);
    let said = || -> PyResult<StatementFailure> {
        let kind = py
            .import("tierwise.model.errors")?
            .getattr("StatementError")?;
        if !value.is_instance(&kind)? {
            return Ok(StatementFailure::new(error.to_string()));
        }
        Ok(StatementFailure {
            message: value.getattr("message")?.extract()?,
            retry: value.getattr("retry")?.extract()?,
            capped: value.getattr("capped")?.extract()?,
        })
    };
    said().unwrap_or_else(|broken| StatementFailure::new(broken.to_string()))
}
