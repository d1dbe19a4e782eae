//! The live disk's server, and its block devices.

use std::path::Path;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Serves an emulated disk until it is unmounted; blocks without holding the interpreter's lock.
#[pyfunction]
pub fn serve_disk(py: Python<'_>, config: &str) -> PyResult<()> {
    py.detach(|| tierwise_disk::serve_device(config))
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// Block devices that the server of the disk in a directory made, also if it has ended.
#[pyfunction]
pub fn block_devices(home: &str) -> Vec<String> {
    tierwise_disk::disk_block_devices(Path::new(home))
}

/// Deletes the block devices of the disk in a directory, whose server has ended.
#[pyfunction]
pub fn delete_block_devices(py: Python<'_>, home: &str) -> PyResult<()> {
    Ok(py.detach(|| tierwise_disk::delete_disk_block_devices(Path::new(home)))?)
}
