//! The engines that clients can drive: the only place that names them all.

use pyo3::prelude::*;
use tierwise_load::mariadb::MariadbConnector;
use tierwise_load::postgres::PostgresConnector;
use tierwise_load::{Driver, LoadError};
use tierwise_sqlite::SqliteConnector;

use crate::convert::user_error;
use crate::python_driver::PythonConnector;

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
