//! The recorder, for Python.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;
use tierwise_recorder::{
    Devices, EmulatedPartition, Places, RoleOf, Session, Subject, UserError, role_by_path,
    role_of_content, roles_of,
};
use tierwise_recording::{About, Role, Rules};

use crate::convert::{duration, for_user, json, parsed, refusal};

/// Subject and places of a recording; see [`Subject`] and [`Places`].
#[derive(Deserialize)]
struct OptionsText {
    first_pid: Option<i32>,
    pids: Vec<i32>,
    root: PathBuf,
    /// The process whose mounts count; this one if none is given.
    mounts_of: Option<i32>,
    emulated: Vec<EmulatedPartition>,
    disk_server_pids: Option<Vec<i32>>,
    buffer_mb: u64,
    spool_dir: PathBuf,
    directory: PathBuf,
    whole: bool,
}

/// The first exception of Python's own `role_of`, raised by the next call that ends something.
type Raised = Arc<Mutex<Option<PyErr>>>;

/// A recording under way; its methods may be called from several threads.
#[pyclass(frozen, name = "Recorder", module = "tierwise._core")]
pub struct PyRecorder {
    session: Mutex<Session>,
    raised: Raised,
}

#[pymethods]
impl PyRecorder {
    /// Attaches; `options` is JSON. `role_of` gives the name of a role, or none, for the path of a file, in place of
    /// the roles of the rules.
    #[new]
    #[pyo3(signature = (options, rules, role_of = None))]
    fn new(
        py: Python<'_>,
        options: &str,
        rules: &PyRules,
        role_of: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let options: OptionsText = parsed(options)?;
        let (raised, rules) = (Raised::default(), rules.0.clone());
        let role_of = role_of.map(|role_of| asking(role_of, Arc::clone(&raised)));
        let attached = py.detach(|| {
            let subject = Subject {
                first_pid: options.first_pid,
                pids: options.pids,
                rules,
                role_of,
                root: options.root,
                devices: Devices::mounted(options.mounts_of, options.emulated),
                disk_server_pids: options.disk_server_pids,
            };
            let places = Places {
                buffer_bytes: options.buffer_mb << 20,
                spool_dir: options.spool_dir,
                out: options.directory,
                whole: options.whole,
            };
            Session::attach(subject, places)
        });
        let session = Mutex::new(attached.map_err(|error| for_user(py, &error))?);
        Ok(Self { session, raised })
    }

    /// Follows the scheduling of these threads, which are clients.
    fn set_clients(&self, py: Python<'_>, tids: Vec<i32>) -> PyResult<()> {
        self.with(py, |session| session.set_clients(tids))
    }

    /// Finds the clients by their wake-ups in this number of seconds; returns the number of clients.
    fn find_clients(&self, py: Python<'_>, seconds: f64) -> PyResult<usize> {
        let duration = duration(seconds)?;
        let trial = self.with(py, |session| session.find_clients(duration))?;
        Ok(trial.clients)
    }

    /// Looks for the programs that hold the sessions, unless the last look was not long ago.
    fn look_for_clients(&self, py: Python<'_>) {
        py.detach(|| lock(&self.session).look_for_clients());
    }

    /// Time without recording begins again: what passed since the last burst does not count.
    fn begin_unrecorded(&self, py: Python<'_>) {
        py.detach(|| lock(&self.session).begin_unrecorded());
    }

    /// Time without recording ends.
    fn end_unrecorded(&self, py: Python<'_>) {
        py.detach(|| lock(&self.session).end_unrecorded());
    }

    /// Begins a burst of these processes; when this returns, events are taken.
    fn begin(&self, py: Python<'_>, pids: Vec<i32>) -> PyResult<()> {
        self.with(py, |session| session.begin_burst(pids))
    }

    /// Ends it, of processes that are these now; returns the number of its events.
    fn end(&self, py: Python<'_>, pids: Vec<i32>) -> PyResult<u64> {
        let burst = self.with(py, |session| session.end_burst(pids))?;
        burst
            .map(|burst| burst.events)
            .ok_or_else(|| PyValueError::new_err("no burst was begun"))
    }

    /// Events of the burst under way, and the estimated size of the recording in bytes.
    fn taken(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let taken = self.with(py, |session| session.taken())?;
        Ok((taken.burst_events, taken.bytes))
    }

    /// Writes the recording so far to another directory; completes `about`, which is JSON, and returns it.
    fn snapshot(&self, py: Python<'_>, about: &str, directory: PathBuf) -> PyResult<String> {
        let about: About = parsed(about)?;
        let about = self.with(py, |session| session.snapshot(about, &directory))?;
        self.completed(&about)
    }

    /// Detaches, decodes what waits and ends the recording; completes `about`, which is JSON, and returns it.
    fn finish(&self, py: Python<'_>, about: &str) -> PyResult<String> {
        let about: About = parsed(about)?;
        let about = self.with(py, |session| session.finish(about))?;
        self.completed(&about)
    }

    /// Detaches. No error if already detached.
    fn close(&self, py: Python<'_>) {
        py.detach(|| lock(&self.session).close());
    }
}

impl PyRecorder {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        action: impl FnOnce(&mut Session) -> Result<T, UserError> + Send,
    ) -> PyResult<T> {
        py.detach(|| action(&mut lock(&self.session)))
            .map_err(|error| for_user(py, &error))
    }

    fn completed(&self, about: &About) -> PyResult<String> {
        match lock(&self.raised).take() {
            Some(error) => Err(error),
            None => json(about),
        }
    }
}

/// Asks Python for the roles of files.
fn asking(role_of: Py<PyAny>, raised: Raised) -> RoleOf {
    Box::new(move |path| {
        let asked = Python::attach(|py| role_of.call1(py, (path,))?.extract(py));
        let name: Option<String> = asked.unwrap_or_else(|error| {
            lock(&raised).get_or_insert(error);
            None
        });
        name.as_deref().and_then(Role::of_files)
    })
}

/// Ignores poisoning: each step leaves the state whole, so a panic of another thread does no harm.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reason why nothing can be recorded here, or none.
#[pyfunction]
pub fn recording_impossible() -> Option<&'static str> {
    tierwise_recorder::impossible()
}

/// Length of a burst by default, in seconds.
#[pyfunction]
pub fn default_burst_s(seconds: Option<f64>, duty: f64) -> f64 {
    tierwise_recorder::default_burst_s(seconds, duty)
}

// Rules of engines for Python.

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
