//! The recorder, for Python.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde::Deserialize;
use tierwise_record::capture::Options;
use tierwise_record::timeline::{DeviceRange, Extent, FileFacts};
use tierwise_record::{Recorder, RecorderError, measure_host as measured};
use tierwise_recording::{About, Role, Rules};

use crate::interrupt::user_error;

/// How often the kernel's buffers are emptied.
const POLL: Duration = Duration::from_millis(20);

/// Inputs and destination of a recording; see [`Options`].
#[derive(Deserialize)]
struct OptionsText {
    directory: PathBuf,
    tracefs: PathBuf,
    instance: String,
    spool_dir: PathBuf,
    pids: Vec<i32>,
    disk_server_pids: Vec<i32>,
    buffer_mb: u64,
    rules: String,
    rules_file: String,
    devices: Vec<DeviceText>,
}

/// The part of a device that identifies its requests.
#[derive(Deserialize)]
struct DeviceText {
    stretches: Vec<StretchText>,
}

/// Contiguous sectors on the disk that block events name.
#[derive(Deserialize)]
struct StretchText {
    number: u32,
    first_sector: u64,
    sectors: u64,
    offset_sectors: u64,
}

/// Facts about a file, found by Python.
#[derive(Deserialize)]
struct FactsText {
    role: Option<Role>,
    device: Option<u32>,
    size_bytes: u64,
    /// Device, first sector, sectors, and offset in bytes.
    extents: Vec<(u32, u64, u64, u64)>,
}

/// A recording under way; its methods may be called from several threads.
#[pyclass(frozen, name = "Recorder", module = "tierwise._core")]
pub struct PyRecorder(Recorder);

#[pymethods]
impl PyRecorder {
    /// Attaches; `options` is JSON.
    #[new]
    fn new(py: Python<'_>, options: &str) -> PyResult<Self> {
        let told: OptionsText = parsed(options)?;
        let rules = Rules::parse(&told.rules, &told.rules_file)
            .map_err(|error| user_error(py, &error.message, &error.fix))?;
        let devices = told.devices.iter().zip(0..).flat_map(ranges_of).collect();
        let options = Options {
            tracefs: told.tracefs,
            instance: told.instance,
            spool_dir: told.spool_dir,
            pids: told.pids,
            buffer_bytes: told.buffer_mb << 20,
            poll: POLL,
            disk_server_pids: told.disk_server_pids,
        };
        py.detach(|| Recorder::attach(options, rules, devices, &told.directory))
            .map(Self)
            .map_err(|error| raised(py, &error))
    }

    /// Traces other processes from the next burst on.
    fn set_processes(&self, py: Python<'_>, pids: Vec<i32>) -> PyResult<()> {
        py.detach(|| self.0.set_processes(pids))
            .map_err(|error| raised(py, &error))
    }

    /// Follows the scheduling of these threads, which are clients.
    fn set_clients(&self, py: Python<'_>, tids: Vec<i32>) -> PyResult<()> {
        py.detach(|| self.0.set_clients(tids))
            .map_err(|error| raised(py, &error))
    }

    /// Finds the clients by their wake-ups in this number of seconds; returns the number of clients.
    fn find_clients(&self, py: Python<'_>, seconds: f64) -> PyResult<usize> {
        let duration = Duration::try_from_secs_f64(seconds)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        py.detach(|| self.0.find_clients(duration))
            .map(|trial| trial.clients)
            .map_err(|error| raised(py, &error))
    }

    /// Begins a burst; when this returns, events are taken.
    fn begin(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.begin())
            .map_err(|error| raised(py, &error))
    }

    /// Ends it, and returns its immediate facts, as JSON.
    #[pyo3(signature = (log_delay_us = 0.0))]
    fn end(&self, py: Python<'_>, log_delay_us: f64) -> PyResult<String> {
        let summary = py
            .detach(|| self.0.end(log_delay_us))
            .map_err(|error| raised(py, &error))?;
        let told = summary.map(|one| {
            serde_json::json!({
                "start_ns": one.start_ns,
                "end_ns": one.end_ns,
                "events": one.events,
                "lost": one.lost,
                "bytes": one.bytes,
                "paths": one.paths,
            })
        });
        told.map(|told| told.to_string())
            .ok_or_else(|| PyValueError::new_err("no burst was begun"))
    }

    /// Decodes the oldest burst that waits; returns the number of its events, or none if no burst waits.
    fn decode(&self, py: Python<'_>, resolve: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let resolve = resolve.clone().unbind();
        let decoded = py.detach(|| {
            self.0.decode(|paths| {
                Python::attach(|py| facts_of(&resolve, py, &paths)).map_err(Failure::Python)
            })
        });
        decoded.map_err(|failure| match failure {
            Failure::Python(error) => error,
            Failure::Recorder(error) => raised(py, &error),
        })
    }

    /// Writes the bursts decoded by now to another directory; completes `about`, which is JSON, and returns
    /// it.
    fn snapshot(&self, py: Python<'_>, about: &str, directory: PathBuf) -> PyResult<String> {
        let about: About = parsed(about)?;
        let about = py
            .detach(|| self.0.snapshot(about, &directory))
            .map_err(|error| raised(py, &error))?;
        serde_json::to_string(&about).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// Detaches and ends the recording; completes `about`, which is JSON, and returns it.
    fn finish(&self, py: Python<'_>, about: &str) -> PyResult<String> {
        let about: About = parsed(about)?;
        let about = py
            .detach(|| self.0.finish(about))
            .map_err(|error| raised(py, &error))?;
        serde_json::to_string(&about).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// Detaches. No error if already detached.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}

/// Costs of this host, as JSON; none where it has no idle core.
#[pyfunction]
pub fn measure_host(py: Python<'_>) -> PyResult<Option<String>> {
    let host = py.detach(measured);
    host.map(|host| serde_json::to_string(&host))
        .transpose()
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// Errors while a burst is decoded.
enum Failure {
    Python(PyErr),
    Recorder(RecorderError),
}

impl From<RecorderError> for Failure {
    fn from(error: RecorderError) -> Self {
        Self::Recorder(error)
    }
}

fn ranges_of((device, index): (&DeviceText, u32)) -> impl Iterator<Item = DeviceRange> {
    device.stretches.iter().map(move |stretch| DeviceRange {
        number: stretch.number,
        first_sector: stretch.first_sector,
        sectors: stretch.sectors,
        offset_sectors: stretch.offset_sectors,
        device: index,
    })
}

fn facts_of(resolve: &Py<PyAny>, py: Python<'_>, paths: &[String]) -> PyResult<Vec<FileFacts>> {
    let asked =
        serde_json::to_string(paths).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let answer: String = resolve.call1(py, (asked,))?.extract(py)?;
    let told: Vec<FactsText> = parsed(&answer)?;
    Ok(told.into_iter().map(described).collect())
}

fn described(told: FactsText) -> FileFacts {
    let extent = |(device, sector, sectors, offset_bytes)| Extent {
        device,
        sector,
        sectors,
        offset_bytes,
    };
    FileFacts {
        role: told.role,
        device: told.device,
        size_bytes: told.size_bytes,
        extents: told.extents.into_iter().map(extent).collect(),
    }
}

fn parsed<'a, T: Deserialize<'a>>(json: &'a str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn raised(py: Python<'_>, error: &RecorderError) -> PyErr {
    user_error(py, error, error.fix())
}
