//! Rules of engines for Python.

use std::path::PathBuf;

use pyo3::prelude::*;
use tierwise_recorder::{role_by_path, role_of_content, roles_of};
use tierwise_recording::{Role, Rules};

use crate::convert::refusal;

/// Roles of an engine's files, by the text of its rules file.
#[pyclass(frozen, name = "Rules", module = "tierwise._core")]
pub struct PyRules(pub(crate) Rules);

#[pymethods]
impl PyRules {
    /// A `ValueError` holds the fault of the text and its fix.
    #[new]
    fn new(text: &str, file: &str) -> PyResult<Self> {
        Rules::parse(text, file).map(Self).map_err(refusal)
    }

    /// The same, with roles by path before them, each as `PATH=ROLE`; a `ValueError` as above.
    fn with_roles(&self, given: Vec<String>) -> PyResult<Self> {
        let first: Result<Vec<_>, _> = given.iter().map(|text| role_by_path(text)).collect();
        let first = first.map_err(refusal)?;
        self.after(&first)
    }

    /// The same, with roles by where the settings and links of a server put its files.
    fn on_server(&self, pid: i32, root: PathBuf) -> PyResult<Self> {
        self.after(&roles_of(pid, &self.0, &root))
    }

    #[getter]
    fn is_server(&self) -> bool {
        self.0.is_server
    }

    #[getter]
    fn settings(&self) -> Vec<String> {
        self.0.settings.clone()
    }

    #[getter]
    fn counters(&self) -> Option<&str> {
        self.0.counters.as_deref()
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

    /// Role of a file by its first bytes, or none.
    fn role_of_content(&self, place: PathBuf) -> Option<&'static str> {
        role_of_content(&self.0, &place).map(tierwise_recording::Role::name)
    }

    /// Role of a file by its path, or none.
    fn role_of(&self, path: &str) -> Option<&'static str> {
        self.0.role_of(path).map(tierwise_recording::Role::name)
    }
}

impl PyRules {
    fn after(&self, first: &[(String, Role)]) -> PyResult<Self> {
        let rules = self.0.clone().after(first, "--role");
        rules.map(Self).map_err(refusal)
    }
}
