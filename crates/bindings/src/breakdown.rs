//! Where the time of a recording went, for Python.

use std::path::PathBuf;

use pyo3::prelude::*;
use tierwise_recording::Recording;
use tierwise_work::breakdown;

use crate::convert::{json, told_to_user};
use crate::defect::told;
use crate::interrupt::abandonable;

/// Where the time of a recording went, as JSON, with at most `most_files` files.
#[pyfunction]
pub fn profile_recording(py: Python<'_>, path: PathBuf, most_files: usize) -> PyResult<String> {
    told(py, || {
        let read =
            move || Recording::read(&path).map(|recording| breakdown(&recording, most_files));
        let found = abandonable(py, read)?.map_err(|error| told_to_user(py, &error))?;
        json(&found)
    })
}
