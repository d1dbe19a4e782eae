//! Confines the calling thread to the files that it needs.

use std::path::PathBuf;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

/// Confine this thread and those that it starts to files below these directories; `False` where the kernel
/// cannot.
#[pyfunction]
#[pyo3(signature = (*, readable, writable))]
pub fn confine(readable: Vec<PathBuf>, writable: Vec<PathBuf>) -> PyResult<bool> {
    tierwise_confine::confine(&readable, &writable)
        .map_err(|error| PyOSError::new_err(error.to_string()))
}
