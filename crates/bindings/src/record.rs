//! The recorder, for Python.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;
use tierwise_recorder::{
    BurstSchedule, DiscoveredDevices, EmulatedPartition, RecordedDatabase, RecordingControl,
    RoleLookup, Session, TracerStorage, UserError, parse_role_by_path, role_of_content,
    roles_by_settings,
};
use tierwise_recording::{About, Role, Rules};

use crate::convert::{duration_from_seconds, from_json, tierwise_error_of, to_json, value_error};

/// Subject, places and schedule of a recording; see [`RecordedDatabase`], [`TracerStorage`] and [`BurstSchedule`].
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
    schedule: ScheduleText,
}

#[derive(Deserialize)]
struct ScheduleText {
    seconds: Option<f64>,
    duty: f64,
    burst_s: f64,
    limit_bytes: u64,
}

impl ScheduleText {
    fn schedule(&self) -> Result<BurstSchedule, UserError> {
        BurstSchedule::new(self.seconds, self.duty, self.burst_s, self.limit_bytes)
    }
}

/// The first exception of Python's own functions, raised by the call that made them or the next one that ends something.
type PendingException = Arc<Mutex<Option<PyErr>>>;

/// A recording under way; its methods may be called from several threads.
#[pyclass(frozen, name = "Recorder", module = "tierwise._core")]
pub struct PyRecorder {
    session: Mutex<Session>,
    raised: PendingException,
    stop: StopFlag,
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
        let options: OptionsText = from_json(options)?;
        let schedule = options.schedule.schedule();
        let schedule = schedule.map_err(|error| tierwise_error_of(py, &error))?;
        let (raised, rules) = (PendingException::default(), rules.0.clone());
        let role_of = role_of.map(|role_of| role_lookup(role_of, Arc::clone(&raised)));
        let attached = py.detach(|| {
            let subject = RecordedDatabase {
                first_pid: options.first_pid,
                pids: options.pids,
                rules,
                role_of,
                root: options.root,
                devices: DiscoveredDevices::mounted(options.mounts_of, options.emulated),
                disk_server_pids: options.disk_server_pids,
            };
            let places = TracerStorage {
                buffer_bytes: options.buffer_mb << 20,
                spool_dir: options.spool_dir,
                out: options.directory,
            };
            Session::attach(subject, places, schedule)
        });
        let session = Mutex::new(attached.map_err(|error| tierwise_error_of(py, &error))?);
        let stop = StopFlag::default();
        Ok(Self {
            session,
            raised,
            stop,
        })
    }

    /// Takes bursts by the schedule, for its time or this number of seconds, until [`Self::stop`] or the database's end.
    ///
    /// `processes` gives the current pids, `clients` the client threads if the caller knows them; `begun` is called when
    /// the time begins to count, `say` gets sentences. An exception of theirs, or of a signal's handler, ends the window
    /// and is raised.
    #[pyo3(signature = (processes, clients, begun, say, seconds = None))]
    fn run(
        &self,
        py: Python<'_>,
        processes: Py<PyAny>,
        clients: Option<Py<PyAny>>,
        begun: Py<PyAny>,
        say: Py<PyAny>,
        seconds: Option<f64>,
    ) -> PyResult<()> {
        let length = seconds.map(duration_from_seconds).transpose()?;
        let control = PyControl {
            processes,
            clients,
            begun,
            say,
            stop: &self.stop,
            raised: &self.raised,
        };
        let ended = self.with(py, |session| session.run(length, &control));
        match lock(&self.raised).take() {
            Some(error) => Err(error),
            None => ended,
        }
    }

    /// Ends the window under way and any later one; may be called from any thread.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.stop.set());
    }

    /// Whether one of the first processes still runs.
    fn alive(&self, py: Python<'_>) -> bool {
        py.detach(|| lock(&self.session).is_alive())
    }

    /// Whether the recording has reached its limit.
    fn full(&self, py: Python<'_>) -> bool {
        py.detach(|| lock(&self.session).is_full())
    }

    /// Follows the scheduling of these threads, which are clients.
    fn set_clients(&self, py: Python<'_>, tids: Vec<i32>) -> PyResult<()> {
        self.with(py, |session| session.set_clients(tids))
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

    /// Writes the recording so far to another directory; completes `about`, which is JSON, and returns it.
    fn snapshot(&self, py: Python<'_>, about: &str, directory: PathBuf) -> PyResult<String> {
        let about: About = from_json(about)?;
        let about = self.with(py, |session| session.snapshot(about, &directory))?;
        self.completed(&about)
    }

    /// Detaches, decodes what waits and ends the recording; completes `about`, which is JSON, and returns it.
    fn finish(&self, py: Python<'_>, about: &str) -> PyResult<String> {
        let about: About = from_json(about)?;
        let about = self.with(py, |session| session.finish(about))?;
        self.completed(&about)
    }

    /// Ends the window under way, and detaches. No error if already detached.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            self.stop.set();
            lock(&self.session).close();
        });
    }
}

impl PyRecorder {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        action: impl FnOnce(&mut Session) -> Result<T, UserError> + Send,
    ) -> PyResult<T> {
        py.detach(|| action(&mut lock(&self.session)))
            .map_err(|error| tierwise_error_of(py, &error))
    }

    fn completed(&self, about: &About) -> PyResult<String> {
        match lock(&self.raised).take() {
            Some(error) => Err(error),
            None => to_json(about),
        }
    }
}

/// A flag that wakes whoever waits for it.
#[derive(Default)]
struct StopFlag {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl StopFlag {
    fn set(&self) {
        *lock(&self.is_set) = true;
        self.changed.notify_all();
    }

    /// Waits for it, at most this long; gives whether it is set.
    fn wait(&self, longest: Duration) -> bool {
        let waited = self
            .changed
            .wait_timeout_while(lock(&self.is_set), longest, |is_set| !*is_set);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Python's functions in control of a recording.
struct PyControl<'a> {
    processes: Py<PyAny>,
    clients: Option<Py<PyAny>>,
    begun: Py<PyAny>,
    say: Py<PyAny>,
    stop: &'a StopFlag,
    raised: &'a PendingException,
}

impl PyControl<'_> {
    fn ask<T: Default>(&self, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> T {
        Python::attach(call).unwrap_or_else(|error| {
            lock(self.raised).get_or_insert(error);
            T::default()
        })
    }
}

impl RecordingControl for PyControl<'_> {
    fn wait(&self, longest: Duration) -> bool {
        let stopped = self.stop.wait(longest);
        self.ask(|py| py.check_signals());
        stopped || lock(self.raised).is_some()
    }

    fn say(&self, sentence: &str) {
        self.ask(|py| self.say.call1(py, (sentence,)).map(drop));
    }

    fn processes(&self) -> Option<Vec<i32>> {
        Some(self.ask(|py| self.processes.call0(py)?.extract(py)))
    }

    fn clients(&self) -> Option<Vec<i32>> {
        let clients = self.clients.as_ref()?;
        Some(self.ask(|py| clients.call0(py)?.extract(py)))
    }

    fn begun(&self) {
        self.ask(|py| self.begun.call0(py).map(drop));
    }
}

/// Asks Python for the roles of files.
fn role_lookup(role_of: Py<PyAny>, raised: PendingException) -> RoleLookup {
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

/// Reason why nothing can be recorded here with its fix, or none.
#[pyfunction]
pub fn recording_impossible() -> Option<(&'static str, &'static str)> {
    tierwise_recorder::why_tracing_impossible()
}

/// Refuses a schedule that cannot be, naming the option.
#[pyfunction]
pub fn require_schedule(
    py: Python<'_>,
    seconds: Option<f64>,
    duty: f64,
    burst_s: f64,
    limit_bytes: u64,
) -> PyResult<()> {
    let refused = BurstSchedule::new(seconds, duty, burst_s, limit_bytes);
    refused
        .map(drop)
        .map_err(|error| tierwise_error_of(py, &error))
}

/// Share of the time to record by default, of a recording of these seconds.
#[pyfunction]
pub fn default_duty(seconds: f64) -> f64 {
    tierwise_recorder::default_burst_share(seconds)
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
        Rules::parse(text, file).map(Self).map_err(value_error)
    }

    /// The same, with roles by path before them, each as `PATH=ROLE`; a `ValueError` as above.
    fn with_roles(&self, given: Vec<String>) -> PyResult<Self> {
        let first: Result<Vec<_>, _> = given.iter().map(|text| parse_role_by_path(text)).collect();
        let first = first.map_err(value_error)?;
        self.after(&first)
    }

    /// The same, with roles by where the settings and links of a server put its files.
    fn on_server(&self, pid: i32, root: PathBuf) -> PyResult<Self> {
        self.after(&roles_by_settings(pid, &self.0, &root))
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
        rules.map(Self).map_err(value_error)
    }
}
