//! Clients and the filling of tables.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tierwise_load::mariadb::MariadbConnector;
use tierwise_load::postgres::PostgresConnector;
use tierwise_load::{Clients, Control, Driver, Limit, LoadError, Plan, Task, Workload, sql};
use tierwise_sqlite::SqliteConnector;

use crate::convert::{duration, json, user_error};
use crate::interrupt;
use crate::python_driver::PythonConnector;

/// How often a caller hears of progress.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Closed-loop clients of a database.
#[pyclass(frozen, name = "Clients", module = "tierwise._core")]
pub struct PyClients(Mutex<Box<dyn Clients>>);

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
        let driver = open(driver, address)?;
        let connect = |control: &Control| {
            let plan = Plan::new(&Workload::parse(program_json)?)?;
            driver.connect(plan, clients, seed, control)
        };
        Ok(Self(Mutex::new(interruptible(py, None, connect)?)))
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
            (Some(count), None) => Limit::Transactions(count),
            (None, Some(seconds)) => Limit::Time(duration(seconds)?),
            _ => {
                return Err(PyRuntimeError::new_err(
                    "give either transactions or seconds",
                ));
            }
        };
        let task = Task {
            limit,
            transaction,
            cap: cap_s.map(duration).transpose()?,
        };
        let report = interruptible(py, progress, |control| self.locked().run(task, control))?;
        json(&report)
    }

    /// Give every client a new connection.
    fn reconnect(&self, py: Python<'_>) -> PyResult<()> {
        interruptible(py, None, |control| self.locked().reconnect(control))
    }

    /// Drop the connections.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.locked().close());
    }
}

impl PyClients {
    fn locked(&self) -> std::sync::MutexGuard<'_, Box<dyn Clients>> {
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
    let driver = open(driver, address)?;
    interruptible(py, progress, |control| {
        driver.load(&Workload::parse(program_json)?, seed, control)
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

/// Work that a [`Control`] ends, interrupted by Ctrl-C; `progress` is called with the amount done.
fn interruptible<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Control) -> Result<T, LoadError> + Send,
) -> PyResult<T> {
    let control = Control::default();
    let mut reported = Instant::now();
    let tell = || {
        if let Some(progress) = progress.filter(|_| reported.elapsed() >= PROGRESS_EVERY) {
            reported = Instant::now();
            progress.call1((control.done(),))?;
        }
        Ok(())
    };
    interrupt::watched(py, tell, || control.stop(), || work(&control))?
        .map_err(|error| user_error(py, &error, error.fix()))
}

// The engines that clients can drive: the only place that names them all.

const NAMES: &str = "postgres, mariadb, sqlite or python";

/// The driver of a database. The form of an address depends on the driver; most take a text.
///
/// # Errors
/// `TierwiseError` if there is no such driver or it cannot read the address.
pub fn open(name: &str, address: &Bound<'_, PyAny>) -> PyResult<Box<dyn Driver>> {
    match name {
        "postgres" => boxed(address, PostgresConnector::new(address.extract()?)),
        "mariadb" => boxed(address, MariadbConnector::new(address.extract()?)),
        "sqlite" => boxed(address, SqliteConnector::new(address.extract()?)),
        "python" => Ok(Box::new(PythonConnector::new(address))),
        _ => Err(user_error(
            address.py(),
            &format!("unknown driver {name:?}"),
            &format!("use one of {NAMES}"),
        )),
    }
}

fn boxed<D: Driver + 'static>(
    address: &Bound<'_, PyAny>,
    opened: Result<D, LoadError>,
) -> PyResult<Box<dyn Driver>> {
    match opened {
        Ok(driver) => Ok(Box::new(driver)),
        Err(error) => Err(user_error(address.py(), &error, error.fix())),
    }
}
