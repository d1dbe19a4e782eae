//! Device profiles for Python.

use std::collections::BTreeMap;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use tierwise_device::{Library, Profile, ProfileError};

/// A validated profile.
#[pyclass(frozen, name = "Profile", module = "tierwise._core")]
pub struct PyProfile(Profile);

impl PyProfile {
    pub(crate) fn profile(&self) -> &Profile {
        &self.0
    }
}

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

    /// JSON of every key of the file, with those that it took over from another by `like`.
    #[getter]
    fn fields(&self) -> PyResult<String> {
        serde_json::to_string(self.0.fields())
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Bytes the host may write under the guarantee, in 10^12 bytes, as far as the profile says.
    #[getter]
    fn endurance_tb_written(&self) -> Option<f64> {
        self.0.endurance_tb_written()
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

/// Parses the text of a profile; `library` has the texts of the profiles it refers to, by name. A
/// `ValueError` holds the fault and its fix.
#[pyfunction]
pub fn parse_profile(
    text: &str,
    file: &str,
    library: BTreeMap<String, String>,
) -> PyResult<PyProfile> {
    let profile = Profile::parse_with(text, file, &Library::new(library));
    profile.map(PyProfile).map_err(|error| refusal(&error))
}

/// The keys that a valid profile has or may have, with their bounds, as a JSON list. Errors are those of
/// [`parse_profile`].
#[pyfunction]
pub fn profile_keys(text: &str, file: &str, library: BTreeMap<String, String>) -> PyResult<String> {
    let keys =
        Profile::keys(text, file, &Library::new(library)).map_err(|error| refusal(&error))?;
    serde_json::to_string(&keys).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

fn refusal(error: &ProfileError) -> PyErr {
    PyValueError::new_err((error.to_string(), error.fix.clone()))
}
