//! The live disk's server.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Serves an emulated disk until it is unmounted; blocks without holding the interpreter's lock.
#[pyfunction]
pub fn serve_disk(py: Python<'_>, config: &str) -> PyResult<()> {
    py.detach(|| tierwise_disk::serve(config))
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
