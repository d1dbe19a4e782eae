//! Replays of recordings, for Python.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use tierwise_device::{Profile, ProfileLibrary};
use tierwise_network::{
    JointAnswer, JointRequest, Program, ReproductionRequest, SimulationAnswer, SimulationRequest,
};
use tierwise_recording::Recording;
use tierwise_work::{DisabledMechanisms, Mechanism, Work, time_breakdown};

use crate::convert::{from_json, tierwise_error_of, to_json, value_error};
use crate::interrupt::{run_abandonably, run_interruptibly, with_panics_reported};
use crate::profile::PyProfile;

/// The work of one recording, ready to be replayed. A `ValueError` holds the fault and its fix.
#[pyclass(frozen, name = "Replay", module = "tierwise._core")]
pub struct PyReplay {
    program: Program,
    about: String,
}

#[pymethods]
impl PyReplay {
    /// Reads a recording; `library` has the texts of the profiles that those of its devices refer to, by name;
    /// mechanisms named in `without` are switched off. The files with the numbers `selected` get that role, so that a
    /// placement can name them.
    #[new]
    #[pyo3(signature = (path, library=BTreeMap::new(), without=Vec::new(), selected=Vec::new()))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        library: BTreeMap<String, String>,
        without: Vec<String>,
        selected: Vec<u32>,
    ) -> PyResult<Self> {
        with_panics_reported(py, || {
            run_abandonably(py, move || Self::read(&path, library, &without, &selected))?
        })
    }

    /// Names of the mechanisms that can be switched off.
    #[staticmethod]
    fn mechanisms() -> Vec<&'static str> {
        Mechanism::ALL
            .iter()
            .map(|mechanism| mechanism.name())
            .collect()
    }

    /// The recording's description of itself, as JSON.
    #[getter]
    fn about(&self) -> &str {
        &self.about
    }

    /// The work in short, as JSON.
    fn work(&self) -> PyResult<String> {
        to_json(&self.program.summary())
    }

    /// The recorded run itself, as JSON; options and answer as in docs/evidence/replay.md.
    fn reproduce(&self, py: Python<'_>, options: &str, threads: usize) -> PyResult<String> {
        let options: ReproductionRequest = from_json(options)?;
        with_panics_reported(py, || {
            let reproduction =
                run_until_stopped(py, |stop| options.run(&self.program, threads, stop))?;
            to_json(&reproduction.map_err(value_error)?)
        })
    }

    /// Answers to requests, in their order, as JSON; see docs/evidence/replay.md.
    fn predict(
        &self,
        py: Python<'_>,
        requests: &str,
        profiles: Vec<Py<PyProfile>>,
        threads: usize,
    ) -> PyResult<String> {
        let requests: Vec<SimulationRequest> = from_json(requests)?;
        let profiles = rust_profiles(&profiles);
        with_panics_reported(py, || {
            to_json(&run_until_stopped(py, |stop| {
                SimulationAnswer::all(&self.program, &requests, &profiles, threads, stop)
            })?)
        })
    }
}

/// Answers to requests about several recordings at once, in their order, as JSON; each request has one scenario for
/// each recording. Placements on `{"shared": INDEX}` share that device.
#[pyfunction]
pub fn predict_together(
    py: Python<'_>,
    recordings: Vec<Py<PyReplay>>,
    requests: &str,
    profiles: Vec<Py<PyProfile>>,
    threads: usize,
) -> PyResult<String> {
    let requests: Vec<JointRequest> = from_json(requests)?;
    let profiles = rust_profiles(&profiles);
    let programs: Vec<&Program> = recordings
        .iter()
        .map(|recording| &recording.get().program)
        .collect();
    with_panics_reported(py, || {
        to_json(&run_until_stopped(py, |stop| {
            JointAnswer::all(&programs, &requests, &profiles, threads, stop)
        })?)
    })
}

fn rust_profiles(profiles: &[Py<PyProfile>]) -> Vec<Profile> {
    let profiles = profiles.iter();
    profiles
        .map(|profile| profile.get().profile().clone())
        .collect()
}

impl PyReplay {
    fn read(
        path: &Path,
        library: BTreeMap<String, String>,
        without: &[String],
        selected: &[u32],
    ) -> PyResult<Self> {
        let recording = Recording::read(path).map_err(value_error)?;
        let recording = recording.selecting(selected);
        let about = to_json(&recording.about)?;
        let disabled = DisabledMechanisms::named(without).map_err(value_error)?;
        let work = Work::without(&recording, disabled).map_err(value_error)?;
        drop(recording); // it may be large
        let program = Program::new(work, &ProfileLibrary::new(library));
        let program = program.map_err(value_error)?;
        Ok(Self { program, about })
    }
}

/// Work that ends soon after its flag was set, as Ctrl-C does.
fn run_until_stopped<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send,
) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    run_interruptibly(py, || stop.store(true, Ordering::Relaxed), || work(&stop))
}

// Recordings, for Python.

/// A recording's description of itself, as JSON. With `whole`, every table is read and checked first.
#[pyfunction]
pub fn read_recording(py: Python<'_>, path: PathBuf, whole: bool) -> PyResult<String> {
    with_panics_reported(py, || {
        let read = move || match whole {
            true => Recording::read(&path).map(|recording| recording.about),
            false => Recording::read_about(&path),
        };
        let about = run_abandonably(py, read)?.map_err(|error| tierwise_error_of(py, &error))?;
        to_json(&about)
    })
}

/// Write a recording again, without paths and names of its owner's, to a folder that holds none.
#[pyfunction]
pub fn redact_recording(py: Python<'_>, path: PathBuf, out: PathBuf) -> PyResult<()> {
    with_panics_reported(py, || {
        let write = move || Recording::read(&path).and_then(|whole| whole.redacted().write(&out));
        run_abandonably(py, write)?.map_err(|error| tierwise_error_of(py, &error))
    })
}

// Where the time of a recording went, for Python.

/// Where the time of a recording went, as JSON, with at most `most_files` files.
#[pyfunction]
pub fn profile_recording(py: Python<'_>, path: PathBuf, most_files: usize) -> PyResult<String> {
    with_panics_reported(py, || {
        let read =
            move || Recording::read(&path).map(|recording| time_breakdown(&recording, most_files));
        let found = run_abandonably(py, read)?.map_err(|error| tierwise_error_of(py, &error))?;
        to_json(&found)
    })
}
