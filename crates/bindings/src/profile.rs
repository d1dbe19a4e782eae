//! Device profiles for Python.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use tierwise_device::hdd::{DriveFile, profile_from_drive_files};
use tierwise_device::{Profile, ProfileError, ProfileLibrary};
use tierwise_simulate::{SimulationJob, summarize_profiles};

use crate::convert::{tierwise_error_of, to_json};
use crate::interrupt::run_interruptibly;

/// A validated profile, with the texts that it was read from.
#[pyclass(frozen, name = "Profile", module = "tierwise._core")]
pub struct PyProfile {
    profile: Profile,
    texts: ProfileTexts,
}

/// The arguments of [`parse_profile`].
type ProfileTexts = (String, String, BTreeMap<String, String>);

impl PyProfile {
    pub(crate) fn profile(&self) -> &Profile {
        &self.profile
    }
}

#[pymethods]
impl PyProfile {
    #[getter]
    fn name(&self) -> &str {
        self.profile.name()
    }

    #[getter]
    fn kind(&self) -> &str {
        self.profile.kind()
    }

    #[getter]
    fn summary(&self) -> &str {
        self.profile.summary()
    }

    #[getter]
    fn capacity_bytes(&self) -> u64 {
        self.profile.capacity_bytes()
    }

    #[getter]
    fn write_cache(&self) -> bool {
        self.profile.write_cache()
    }

    /// JSON of every key of the file, with those that it took over from another by `like`.
    #[getter]
    fn fields(&self) -> PyResult<String> {
        to_json(self.profile.fields())
    }

    /// Bytes the host may write under the guarantee, in 10^12 bytes, as far as the profile says.
    #[getter]
    fn endurance_tb_written(&self) -> Option<f64> {
        self.profile.endurance_tb_written()
    }

    #[getter]
    fn sources(&self) -> Vec<(String, String)> {
        self.profile
            .sources()
            .iter()
            .map(|source| (source.key.clone(), source.text.clone()))
            .collect()
    }

    /// The arguments of [`parse_profile`], from which another process can make it again.
    #[getter]
    fn texts(&self) -> ProfileTexts {
        self.texts.clone()
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
    let texts = (text.to_owned(), file.to_owned(), library.clone());
    let profile = Profile::parse_with(text, file, &ProfileLibrary::new(library));
    let profile = profile.map_err(|error| profile_error(&error))?;
    Ok(PyProfile { profile, texts })
}

/// The keys that a valid profile has or may have, with their bounds, as a JSON list. Errors are those of
/// [`parse_profile`].
#[pyfunction]
pub fn profile_keys(text: &str, file: &str, library: BTreeMap<String, String>) -> PyResult<String> {
    let keys = Profile::keys(text, file, &ProfileLibrary::new(library))
        .map_err(|error| profile_error(&error))?;
    to_json(&keys)
}

fn profile_error(error: &ProfileError) -> PyErr {
    PyValueError::new_err((error.to_string(), error.fix.clone()))
}

// Measured drives' files as profiles, for Python.

/// The text of a profile from the texts of a drive's geometry and seek files. A `ValueError` holds which of them is
/// at fault ("geometry" or "seek") and how.
#[pyfunction]
pub fn import_drive(geometry: &str, seek: &str) -> PyResult<String> {
    profile_from_drive_files(geometry, seek).map_err(|error| {
        let file = match error.file {
            DriveFile::Geometry => "geometry",
            DriveFile::Seek => "seek",
        };
        PyValueError::new_err((file, error.problem))
    })
}

// Device models on virtual time.

/// Simulate a job, given as JSON; returns its report as JSON.
#[pyfunction]
pub fn simulate_device(py: Python<'_>, profile: &PyProfile, job: &str) -> PyResult<String> {
    let job: SimulationJob =
        serde_json::from_str(job).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let stop = AtomicBool::new(false);
    let end = || stop.store(true, Ordering::Relaxed);
    let report = run_interruptibly(py, end, || job.run(profile.profile(), &stop))?;
    to_json(&report.map_err(|error| tierwise_error_of(py, &error))?)
}

/// Measure devices by short simulations; returns a JSON list of figures in their order.
#[pyfunction]
pub fn summarize_devices(
    py: Python<'_>,
    profiles: Vec<Py<PyProfile>>,
    threads: usize,
) -> PyResult<String> {
    let profiles: Vec<Profile> = profiles
        .iter()
        .map(|profile| profile.get().profile().clone())
        .collect();
    let summaries = py.detach(|| summarize_profiles(&profiles, threads));
    let summaries: Result<Vec<_>, _> = summaries.into_iter().collect();
    to_json(&summaries.map_err(|error| tierwise_error_of(py, &error))?)
}
