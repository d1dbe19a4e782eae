//! Measured drives' files as profiles, for Python.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tierwise_device::hdd::{ImportFile, import};

/// The text of a profile from the texts of a drive's geometry and seek files. A `ValueError` holds which of them is
/// at fault ("geometry" or "seek") and how.
#[pyfunction]
pub fn import_drive(geometry: &str, seek: &str) -> PyResult<String> {
    import(geometry, seek).map_err(|error| {
        let file = match error.file {
            ImportFile::Geometry => "geometry",
            ImportFile::Seek => "seek",
        };
        PyValueError::new_err((file, error.problem))
    })
}
