//! Clients and the filling of tables.

use std::sync::Mutex;
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use tierwise_load::postgres::{PostgresClient, PostgresConnector};
use tierwise_load::{Limit, LoadError, Plan, Pool, Stop, Workload, fill, sql};

use crate::interrupt;

/// Closed-loop clients of a PostgreSQL server.
#[pyclass(frozen, module = "tierwise._core")]
pub struct PostgresClients(Mutex<Pool<PostgresClient>>);

#[pymethods]
impl PostgresClients {
    #[new]
    fn new(
        py: Python<'_>,
        dsn: &str,
        workload_json: &str,
        clients: usize,
        seed: u64,
    ) -> PyResult<Self> {
        let connect = |stop: &Stop| {
            let plan = Plan::new(&Workload::parse(workload_json)?)?;
            Pool::connect(&PostgresConnector::new(dsn)?, plan, clients, seed, stop)
        };
        Ok(Self(Mutex::new(interruptible(py, connect)?)))
    }

    /// Run up to a number of transactions in all, or for a time in seconds.
    #[pyo3(signature = (transactions=None, seconds=None))]
    fn run(
        &self,
        py: Python<'_>,
        transactions: Option<u64>,
        seconds: Option<f64>,
    ) -> PyResult<String> {
        let limit = match (transactions, seconds) {
            (Some(count), None) => Limit::Transactions(count),
            (None, Some(seconds)) => Limit::Time(
                Duration::try_from_secs_f64(seconds)
                    .map_err(|error| PyValueError::new_err(error.to_string()))?,
            ),
            _ => {
                return Err(PyRuntimeError::new_err(
                    "give either transactions or seconds",
                ));
            }
        };
        let report = interruptible(py, |stop| {
            self.0
                .lock()
                .expect("a run does not panic")
                .run(limit, stop)
        })?;
        serde_json::to_string(&report).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }
}

/// Fill the tables of a workload in PostgreSQL; returns the number of rows.
#[pyfunction]
pub fn load_tables(py: Python<'_>, dsn: &str, workload_json: &str, seed: u64) -> PyResult<u64> {
    interruptible(py, |stop| {
        fill(
            &PostgresConnector::new(dsn)?,
            &Workload::parse(workload_json)?,
            seed,
            stop,
        )
    })
}

/// The statements of an SQL script, without their semicolons.
#[pyfunction]
pub fn split_statements(script: &str) -> Vec<String> {
    sql::split(script)
}

/// Names of the `:name` parameters of a statement, each once.
#[pyfunction]
pub fn statement_parameters(statement: &str) -> Vec<String> {
    sql::Template::parse(statement).names().to_vec()
}

/// Work that a [`Stop`] ends, interrupted by Ctrl-C.
fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Stop) -> Result<T, LoadError> + Send,
) -> PyResult<T> {
    let stop = Stop::default();
    interrupt::interruptible(py, || stop.set(), || work(&stop))?
        .map_err(|error| interrupt::user_error(py, &error, error.fix()))
}
