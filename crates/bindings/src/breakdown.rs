//! Where the time of a recording went, for Python.

use std::path::PathBuf;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tierwise_recording::Recording;
use tierwise_work::breakdown;

use crate::defect::told;
use crate::interrupt::{abandonable, user_error};

/// Where the time of a recording went, as JSON, with at most `most_files` files.
#[pyfunction]
pub fn profile_recording(py: Python<'_>, path: PathBuf, most_files: usize) -> PyResult<String> {
    told(py, || {
        let read =
            move || Recording::read(&path).map(|recording| breakdown(&recording, most_files));
        let found =
            abandonable(py, read)?.map_err(|error| user_error(py, &error.message, &error.fix))?;
        serde_json::to_string(&found).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    })
}
