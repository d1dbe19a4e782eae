//! Measuring a real device.

use std::path::Path;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tierwise_device::{Op, Request, SECTOR_BYTES};
use tierwise_pattern::Pattern;
use tierwise_probe::{
    MeasuredTarget, ProbeEngine, ProbeError, ProbeLimit, fill_target, measure_pattern,
    time_listed_requests,
};

use crate::convert::{duration_from_seconds, tierwise_error, to_json};
use crate::interrupt::run_interruptibly;

/// A file of the probe's own, or a block device that is not in use.
#[pyclass(frozen, module = "tierwise._core")]
pub struct ProbeTarget {
    target: RwLock<Option<MeasuredTarget>>,
    size_bytes: u64,
    engine: ProbeEngine,
}

#[pymethods]
impl ProbeTarget {
    /// Make a new file.
    #[staticmethod]
    #[pyo3(signature = (path, size_bytes, engine=None))]
    fn create(py: Python<'_>, path: &str, size_bytes: u64, engine: Option<&str>) -> PyResult<Self> {
        Self::opened(
            py,
            MeasuredTarget::create(Path::new(path), size_bytes),
            engine,
        )
    }

    /// Open a block device for writing.
    #[staticmethod]
    #[pyo3(signature = (path, engine=None))]
    fn open_device(py: Python<'_>, path: &str, engine: Option<&str>) -> PyResult<Self> {
        Self::opened(py, MeasuredTarget::open_device(Path::new(path)), engine)
    }

    /// Open a block device that others use, for reading alone.
    #[staticmethod]
    #[pyo3(signature = (path, engine=None))]
    fn open_to_read(py: Python<'_>, path: &str, engine: Option<&str>) -> PyResult<Self> {
        Self::opened(py, MeasuredTarget::open_to_read(Path::new(path)), engine)
    }

    #[getter]
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    #[getter]
    fn engine(&self) -> &str {
        self.engine.name()
    }

    /// Close it; later calls are errors.
    fn close(&self) {
        *self.target.write().expect("no holder panics") = None;
    }

    /// Write it whole.
    fn fill(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, |target, stop| fill_target(target, self.engine, stop))
    }

    /// Serve a pattern for a time; returns JSON.
    fn measure(&self, py: Python<'_>, pattern: &str, seconds: f64, seed: u64) -> PyResult<String> {
        let pattern =
            Pattern::parse(pattern).map_err(|error| tierwise_error(py, &error, error.fix))?;
        let time = duration_from_seconds(seconds)?;
        let measured = self.run(py, |target, stop| {
            measure_pattern(target, self.engine, &pattern, seed, time, stop)
        })?;
        to_json(&measured)
    }

    /// Serve listed requests (operation, first byte, bytes); returns number, start and end in ns of each.
    fn trace(
        &self,
        py: Python<'_>,
        requests: Vec<(String, u64, u64)>,
        depth: u32,
        seconds: f64,
    ) -> PyResult<Vec<(u64, u64, u64)>> {
        let requests = requests
            .iter()
            .map(request_from_tuple)
            .collect::<PyResult<Vec<_>>>()?;
        let time = duration_from_seconds(seconds)?;
        let limit = ProbeLimit { depth, time };
        let done = self.run(py, |target, stop| {
            time_listed_requests(target, self.engine, &requests, limit, stop)
        })?;
        Ok(done
            .iter()
            .map(|request| (request.number, request.start_ns, request.end_ns))
            .collect())
    }
}

impl ProbeTarget {
    fn opened(
        py: Python<'_>,
        target: Result<MeasuredTarget, ProbeError>,
        engine: Option<&str>,
    ) -> PyResult<Self> {
        let engine = match engine {
            None => ProbeEngine::best(),
            Some("io_uring") => ProbeEngine::IoUring,
            Some("threads") => ProbeEngine::Threads,
            Some(other) => return Err(PyValueError::new_err(format!("no engine {other:?}"))),
        };
        let target = target.map_err(|error| tierwise_error(py, &error, error.fix()))?;
        Ok(Self {
            size_bytes: target.size_bytes(),
            target: RwLock::new(Some(target)),
            engine,
        })
    }

    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&MeasuredTarget, &AtomicBool) -> Result<T, ProbeError> + Send,
    ) -> PyResult<T> {
        let stop = AtomicBool::new(false);
        let held = self.target.read().expect("no holder panics");
        let target = held
            .as_ref()
            .ok_or_else(|| PyValueError::new_err("the target is closed"))?;
        let set = || stop.store(true, Ordering::Relaxed);
        run_interruptibly(py, set, || work(target, &stop))?
            .map_err(|error| tierwise_error(py, &error, error.fix()))
    }
}

/// Name of the default engine.
#[pyfunction]
pub fn probe_engine() -> &'static str {
    ProbeEngine::best().name()
}

fn request_from_tuple((op, first_byte, bytes): &(String, u64, u64)) -> PyResult<Request> {
    let op = match op.as_str() {
        "R" => Op::Read,
        "W" => Op::Write,
        "F" => Op::Flush,
        other => return Err(PyValueError::new_err(format!("no operation {other:?}"))),
    };
    let sectors = u32::try_from(bytes / SECTOR_BYTES)
        .map_err(|_| PyValueError::new_err(format!("{bytes} bytes are too many")))?;
    Ok(Request {
        op,
        sector: first_byte / SECTOR_BYTES,
        sectors,
        fua: false,
    })
}
