//! Replays of recordings, for Python.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use tierwise_device::{Library, Profile};
use tierwise_network::{
    Answer, JointAnswer, JointRequest, Program, ReproductionRequest, SimulationRequest,
};
use tierwise_recording::Recording;
use tierwise_work::{Disabled, Mechanism, Work, breakdown};

use crate::convert::{for_user, json, parsed, refusal};
use crate::interrupt::{abandonable, interruptible, with_panics_reported};
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
            abandonable(py, move || Self::read(&path, library, &without, &selected))?
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
        json(&self.program.summary())
    }

    /// The recorded run itself, as JSON; options and answer as in docs/evidence/replay.md.
    fn reproduce(&self, py: Python<'_>, options: &str, threads: usize) -> PyResult<String> {
        let options: ReproductionRequest = parsed(options)?;
        with_panics_reported(py, || {
            let reproduction = stoppable(py, |stop| options.run(&self.program, threads, stop))?;
            json(&reproduction.map_err(refusal)?)
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
        let requests: Vec<SimulationRequest> = parsed(requests)?;
        let profiles = plain(&profiles);
        with_panics_reported(py, || {
            json(&stoppable(py, |stop| {
                Answer::all(&self.program, &requests, &profiles, threads, stop)
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
    let requests: Vec<JointRequest> = parsed(requests)?;
    let profiles = plain(&profiles);
    let programs: Vec<&Program> = recordings
        .iter()
        .map(|recording| &recording.get().program)
        .collect();
    with_panics_reported(py, || {
        json(&stoppable(py, |stop| {
            JointAnswer::all(&programs, &requests, &profiles, threads, stop)
        })?)
    })
}

fn plain(profiles: &[Py<PyProfile>]) -> Vec<Profile> {
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
        let recording = Recording::read(path).map_err(refusal)?;
        let recording = recording.selecting(selected);
        let about = json(&recording.about)?;
        let disabled = Disabled::named(without).map_err(refusal)?;
        let work = Work::without(&recording, disabled).map_err(refusal)?;
        drop(recording); // it may be large
        let program = Program::new(work, &Library::new(library));
        let program = program.map_err(refusal)?;
        Ok(Self { program, about })
    }
}

/// Work that ends soon after its flag was set, as Ctrl-C does.
fn stoppable<T: Send>(py: Python<'_>, work: impl FnOnce(&AtomicBool) -> T + Send) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    interruptible(py, || stop.store(true, Ordering::Relaxed), || work(&stop))
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
        let about = abandonable(py, read)?.map_err(|error| for_user(py, &error))?;
        json(&about)
    })
}

/// Write a recording again, without paths and names of its owner's, to a folder that holds none.
#[pyfunction]
pub fn redact_recording(py: Python<'_>, path: PathBuf, out: PathBuf) -> PyResult<()> {
    with_panics_reported(py, || {
        let write = move || Recording::read(&path).and_then(|whole| whole.redacted().write(&out));
        abandonable(py, write)?.map_err(|error| for_user(py, &error))
    })
}

// Where the time of a recording went, for Python.

/// Where the time of a recording went, as JSON, with at most `most_files` files.
#[pyfunction]
pub fn profile_recording(py: Python<'_>, path: PathBuf, most_files: usize) -> PyResult<String> {
    with_panics_reported(py, || {
        let read =
            move || Recording::read(&path).map(|recording| breakdown(&recording, most_files));
        let found = abandonable(py, read)?.map_err(|error| for_user(py, &error))?;
        json(&found)
    })
}
