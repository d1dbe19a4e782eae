//! Recordings, for Python.

use std::path::PathBuf;

use pyo3::prelude::*;
use tierwise_recording::Recording;
use tierwise_work::breakdown;

use crate::convert::{json, told_to_user};
use crate::interrupt::{abandonable, told};

/// A recording's description of itself, as JSON. With `whole`, every table is read and checked first.
#[pyfunction]
pub fn read_recording(py: Python<'_>, path: PathBuf, whole: bool) -> PyResult<String> {
    told(py, || {
        let read = move || match whole {
            true => Recording::read(&path).map(|recording| recording.about),
            false => Recording::read_about(&path),
        };
        let about = abandonable(py, read)?.map_err(|error| told_to_user(py, &error))?;
        json(&about)
    })
}

/// Write a recording again, without paths and names of its owner's, to a folder that holds none.
#[pyfunction]
pub fn redact_recording(py: Python<'_>, path: PathBuf, out: PathBuf) -> PyResult<()> {
    told(py, || {
        let write = move || Recording::read(&path).and_then(|whole| whole.redacted().write(&out));
        abandonable(py, write)?.map_err(|error| told_to_user(py, &error))
    })
}

// Where the time of a recording went, for Python.

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
