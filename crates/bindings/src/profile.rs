//! Device profiles for Python.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A validated profile.
#[pyclass(frozen, name = "Profile", module = "tierwise._core")]
pub struct PyProfile(tierwise_device::Profile);

#[pymethods]
impl PyProfile {
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[getter]
    fn kind(&self) -> &str {
        self.0.kind()
    }

    #[getter]
    fn summary(&self) -> &str {
        self.0.summary()
    }

    #[getter]
    fn capacity_bytes(&self) -> u64 {
        self.0.capacity_bytes()
    }

    #[getter]
    fn write_cache(&self) -> bool {
        self.0.write_cache()
    }

    #[getter]
    fn sources(&self) -> Vec<(String, String)> {
        self.0
            .sources()
            .iter()
            .map(|source| (source.key.clone(), source.text.clone()))
            .collect()
    }
}

/// Parses the text of a profile; a `ValueError` holds what is wrong and how to mend it.
#[pyfunction]
pub fn parse_profile(text: &str, file: &str) -> PyResult<PyProfile> {
    match tierwise_device::Profile::parse(text, file) {
        Ok(profile) => Ok(PyProfile(profile)),
        Err(error) => Err(PyValueError::new_err((error.to_string(), error.fix))),
    }
}
