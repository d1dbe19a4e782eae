//! Parts of the recorder without Python, for the one in Python.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tierwise_capture::RateMeter;
use tierwise_recording::Role;

/// CPU time of one event, in ns, by an instance of this name.
#[pyfunction]
pub fn measure_event_cpu_ns(py: Python<'_>, tracefs: PathBuf, instance: &str) -> f64 {
    py.detach(|| tierwise_capture::measure_event_cpu_ns(&tracefs, instance))
}

/// First sector, number of sectors and offset in bytes of each extent of a file.
#[pyfunction]
pub fn file_extents(py: Python<'_>, path: PathBuf) -> Vec<(u64, u64, u64)> {
    let extents = py.detach(|| tierwise_capture::extents_of(&path, 0));
    let placed = extents.into_iter();
    placed
        .map(|one| (one.sector, one.sectors, one.offset_bytes))
        .collect()
}

/// A path as a process with that root has it.
#[pyfunction]
pub fn path_within(py: Python<'_>, root: PathBuf, path: PathBuf) -> PathBuf {
    py.detach(|| tierwise_capture::within(&root, &path))
}

/// Size of all files in the working directory of a process with that root, and sizes by role; none if it is gone.
///
/// `role_of` gives the name of a role, or none, for the path of a file under that root.
#[pyfunction]
pub fn working_directory_sizes(
    py: Python<'_>,
    pid: i32,
    root: PathBuf,
    role_of: Py<PyAny>,
) -> PyResult<Option<(u64, BTreeMap<&'static str, u64>)>> {
    let mut failed = None;
    let asked = |path: &str| -> PyResult<Option<Role>> {
        let name: Option<String> = Python::attach(|py| role_of.call1(py, (path,))?.extract(py))?;
        Ok(Role::ALL
            .into_iter()
            .find(|role| name.as_deref() == Some(role.name())))
    };
    let sizes = py.detach(|| {
        tierwise_capture::working_directory_sizes(pid, &root, |path| {
            asked(path).unwrap_or_else(|error| {
                failed = Some(error);
                None
            })
        })
    });
    if let Some(error) = failed {
        return Err(error);
    }
    Ok(sizes.map(|sizes| {
        let roles = sizes.role_bytes.into_iter();
        let named = roles.map(|(role, size_bytes)| (role.name(), size_bytes));
        (sizes.all_bytes, named.collect())
    }))
}

/// Memory that processes hold, each byte that they share once.
#[pyfunction]
pub fn processes_bytes(py: Python<'_>, pids: Vec<i32>) -> u64 {
    py.detach(|| tierwise_capture::memory_bytes(&pids))
}

/// Lowest memory limit of the control groups that a process is in.
#[pyfunction]
pub fn memory_limit_bytes(py: Python<'_>, pid: i32) -> Option<u64> {
    py.detach(|| tierwise_capture::memory_limit_bytes(pid))
}

/// Waits of processes, with and without recording.
#[pyclass(frozen, name = "RateMeter", module = "tierwise._core")]
pub struct PyRateMeter(Mutex<RateMeter>);

#[pymethods]
impl PyRateMeter {
    #[new]
    fn new(pids: Vec<i32>) -> Self {
        Self(Mutex::new(RateMeter::start(&pids)))
    }

    /// Begins the current span again.
    fn restart(&self, pids: Vec<i32>) {
        self.with(|meter| meter.restart(&pids));
    }

    /// Ends the current span, and begins the next.
    fn end(&self, pids: Vec<i32>, recorded: bool) {
        self.with(|meter| meter.end(&pids, recorded));
    }

    /// Cost of recording, as JSON.
    fn cost(&self, event_cpu_ns: f64) -> PyResult<String> {
        let cost = self.with(|meter| meter.cost(event_cpu_ns));
        serde_json::to_string(&cost).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }
}

impl PyRateMeter {
    fn with<T>(&self, action: impl FnOnce(&mut RateMeter) -> T) -> T {
        action(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
