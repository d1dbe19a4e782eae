//! Clients and the filling of tables.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tierwise_load::mariadb::MariadbConnector;
use tierwise_load::postgres::PostgresConnector;
use tierwise_load::{
    ClientTask, ConnectedClients, EngineDriver, LoadError, ResolvedWorkload, RunControl, RunLimit,
    WorkloadPlan, sql,
};
use tierwise_sqlite::SqliteConnector;

use crate::convert::{duration_from_seconds, tierwise_error, to_json};
use crate::interrupt;
use crate::python_driver::PythonConnector;

/// How often a caller hears of progress.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Closed-loop clients of a database.
#[pyclass(frozen, name = "Clients", module = "tierwise._core")]
pub struct PyClients(Mutex<Box<dyn ConnectedClients>>);

#[pymethods]
impl PyClients {
    #[new]
    fn new(
        py: Python<'_>,
        driver: &str,
        address: &Bound<'_, PyAny>,
        program_json: &str,
        clients: usize,
        seed: u64,
    ) -> PyResult<Self> {
        let driver = open_driver(driver, address)?;
        let connect = |control: &RunControl| {
            let plan = WorkloadPlan::new(&ResolvedWorkload::parse(program_json)?)?;
            driver.connect(plan, clients, seed, control)
        };
        Ok(Self(Mutex::new(run_controlled(py, None, connect)?)))
    }

    /// Run up to a number of transactions in all, or for a time in seconds.
    #[pyo3(signature = (transactions=None, seconds=None, *, transaction=None, cap_s=None, progress=None))]
    fn run(
        &self,
        py: Python<'_>,
        transactions: Option<u64>,
        seconds: Option<f64>,
        transaction: Option<&str>,
        cap_s: Option<f64>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let limit = match (transactions, seconds) {
            (Some(count), None) => RunLimit::Transactions(count),
            (None, Some(seconds)) => RunLimit::Time(duration_from_seconds(seconds)?),
            _ => {
                return Err(PyRuntimeError::new_err(
                    "give either transactions or seconds",
                ));
            }
        };
        let task = ClientTask {
            limit,
            transaction,
            cap: cap_s.map(duration_from_seconds).transpose()?,
        };
        let report = run_controlled(py, progress, |control| self.locked().run(task, control))?;
        to_json(&report)
    }

    /// Give every client a new connection.
    fn reconnect(&self, py: Python<'_>) -> PyResult<()> {
        run_controlled(py, None, |control| self.locked().reconnect(control))
    }

    /// Drop the connections.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.locked().close());
    }
}

impl PyClients {
    fn locked(&self) -> std::sync::MutexGuard<'_, Box<dyn ConnectedClients>> {
        self.0.lock().expect("a run does not panic")
    }
}

/// Fill the tables of a workload; returns the number of rows.
#[pyfunction]
#[pyo3(signature = (driver, address, program_json, seed, *, progress=None))]
pub fn load_tables(
    py: Python<'_>,
    driver: &str,
    address: &Bound<'_, PyAny>,
    program_json: &str,
    seed: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<u64> {
    let driver = open_driver(driver, address)?;
    run_controlled(py, progress, |control| {
        driver.load(&ResolvedWorkload::parse(program_json)?, seed, control)
    })
}

/// The statements of an SQL script, without their semicolons.
#[pyfunction]
pub fn split_statements(script: &str) -> Vec<String> {
    sql::split_script(script)
}

/// Names of the `:name` parameters of a statement, each once.
#[pyfunction]
pub fn statement_parameters(statement: &str) -> Vec<String> {
    sql::StatementTemplate::parse(statement).names().to_vec()
}

/// Work that a [`RunControl`] ends, interrupted by Ctrl-C; `progress` is called with the amount done.
fn run_controlled<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&RunControl) -> Result<T, LoadError> + Send,
) -> PyResult<T> {
    let control = RunControl::default();
    let mut reported = Instant::now();
    let tell = || {
        if let Some(progress) = progress.filter(|_| reported.elapsed() >= PROGRESS_EVERY) {
            reported = Instant::now();
            progress.call1((control.done(),))?;
        }
        Ok(())
    };
    interrupt::run_with_progress(py, tell, || control.stop(), || work(&control))?
        .map_err(|error| tierwise_error(py, &error, error.fix()))
}

// The engines that clients can drive: the only place that names them all.

const NAMES: &str = "postgres, mariadb, sqlite or python";

/// The driver of a database. The form of an address depends on the driver; most take a text.
///
/// # Errors
/// `TierwiseError` if there is no such driver or it cannot read the address.
pub fn open_driver(name: &str, address: &Bound<'_, PyAny>) -> PyResult<Box<dyn EngineDriver>> {
    match name {
        "postgres" => boxed_driver(address, PostgresConnector::new(address.extract()?)),
        "mariadb" => boxed_driver(address, MariadbConnector::new(address.extract()?)),
        "sqlite" => boxed_driver(address, SqliteConnector::new(address.extract()?)),
        "python" => Ok(Box::new(PythonConnector::new(address))),
        _ => Err(tierwise_error(
            address.py(),
            &format!("unknown driver {name:?}"),
            &format!("use one of {NAMES}"),
        )),
    }
}

fn boxed_driver<D: EngineDriver + 'static>(
    address: &Bound<'_, PyAny>,
    opened: Result<D, LoadError>,
) -> PyResult<Box<dyn EngineDriver>> {
    match opened {
        Ok(driver) => Ok(Box::new(driver)),
        Err(error) => Err(tierwise_error(address.py(), &error, error.fix())),
    }
}
