//! Between Rust and Python: JSON, durations, errors.

use std::fmt::Display;
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use tierwise_recording::UserError;

/// A value as JSON.
pub fn to_json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// A value from JSON. A `ValueError` holds the fault and its fix.
pub fn from_json<'a, T: Deserialize<'a>>(text: &'a str) -> PyResult<T> {
    let fix = "give what docs/evidence/replay.md describes";
    serde_json::from_str(text).map_err(|error| value_error(UserError::new(error.to_string(), fix)))
}

/// A number of seconds.
pub fn duration_from_seconds(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// A `ValueError` that holds the fault and its fix: the caller knows the file.
pub fn value_error(error: UserError) -> PyErr {
    PyValueError::new_err((error.message, error.fix))
}

/// The exception that a user sees, of an error that is one line and its fix.
pub fn tierwise_error_of(py: Python<'_>, error: &UserError) -> PyErr {
    tierwise_error(py, error, &error.fix)
}

/// The exception that a user sees.
pub fn tierwise_error(py: Python<'_>, message: &dyn Display, fix: &str) -> PyErr {
    let raised = py.import("tierwise.model.errors").and_then(|module| {
        module
            .getattr("TierwiseError")?
            .call1((message.to_string(), fix))
    });
    raised.map_or_else(|broken| broken, PyErr::from_value)
}
