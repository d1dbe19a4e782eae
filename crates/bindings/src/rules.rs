//! Rules of engines for Python.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tierwise_recording::Rules;

/// Roles of an engine's files, by the text of its rules file.
#[pyclass(frozen, name = "Rules", module = "tierwise._core")]
pub struct PyRules(Rules);

#[pymethods]
impl PyRules {
    /// A `ValueError` holds the fault of the text and its fix.
    #[new]
    fn new(text: &str, file: &str) -> PyResult<Self> {
        match Rules::parse(text, file) {
            Ok(rules) => Ok(Self(rules)),
            Err(error) => Err(PyValueError::new_err((error.message, error.fix))),
        }
    }

    #[getter]
    fn engine(&self) -> &str {
        &self.0.engine
    }

    /// Sentences that every use of a recording by these rules repeats.
    fn warnings(&self, names_alone: bool) -> Vec<String> {
        self.0.warnings(names_alone)
    }

    #[getter]
    fn works_in_data_directory(&self) -> bool {
        self.0.works_in_data_directory
    }

    #[getter]
    fn programs(&self) -> Vec<String> {
        self.0.programs.clone()
    }

    /// Role of a file by its path, or none.
    fn role_of(&self, path: &str) -> Option<&'static str> {
        self.0.role_of(path).map(tierwise_recording::Role::name)
    }
}
