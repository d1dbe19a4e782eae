//! Device models on virtual time.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tierwise_device::Profile;
use tierwise_simulate::{Job, summarize_all};

use crate::convert::{json, told_to_user};
use crate::interrupt::interruptible;
use crate::profile::PyProfile;

/// Simulate a job, given as JSON; returns its report as JSON.
#[pyfunction]
pub fn simulate_device(py: Python<'_>, profile: &PyProfile, job: &str) -> PyResult<String> {
    let job: Job =
        serde_json::from_str(job).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let stop = AtomicBool::new(false);
    let end = || stop.store(true, Ordering::Relaxed);
    let report = interruptible(py, end, || job.run(profile.profile(), &stop))?;
    json(&report.map_err(|error| told_to_user(py, &error))?)
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
    let summaries = py.detach(|| summarize_all(&profiles, threads));
    let summaries: Result<Vec<_>, _> = summaries.into_iter().collect();
    json(&summaries.map_err(|error| told_to_user(py, &error))?)
}
