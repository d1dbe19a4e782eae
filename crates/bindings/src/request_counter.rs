//! Requests to block devices by owner, for Python.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tierwise_recorder::UserError;
use tierwise_recorder::timeline::{DeviceRange, FileExtent};
use tierwise_recorder::{DeviceOwnerRequests, RequestCounter};

use crate::convert::tierwise_error_of;

/// Counts requests by the owner of their sectors.
#[pyclass(frozen, name = "RequestCounter", module = "tierwise._core")]
pub struct PyRequestCounter(Mutex<Option<RequestCounter>>);

#[pymethods]
impl PyRequestCounter {
    /// Attaches. A stretch of a device has the device's index, the number of its disk, its first sector there, its
    /// length in sectors, and its first sector on the device.
    #[new]
    fn new(py: Python<'_>, stretches: Vec<(u32, u32, u64, u64, u64)>) -> PyResult<Self> {
        let devices = stretches.into_iter().map(device_range).collect();
        py.detach(|| RequestCounter::attach(devices))
            .map(|counter| Self(Mutex::new(Some(counter))))
            .map_err(|error| tierwise_error_of(py, &error))
    }

    /// Extents that belong to an owner: first sector on the device, sectors, and offset in the file in bytes.
    fn place(
        &self,
        py: Python<'_>,
        owner: u32,
        device: u32,
        extents: Vec<(u64, u64, u64)>,
    ) -> PyResult<()> {
        self.with(py, |counter| {
            for (sector, sectors, offset_bytes) in extents {
                let extent = FileExtent {
                    device,
                    sector,
                    sectors,
                    offset_bytes,
                };
                counter.place(owner, extent);
            }
            Ok(())
        })
    }

    /// Counts from zero.
    fn begin(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, RequestCounter::begin)
    }

    /// Counts the requests that completed until now.
    fn count(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |counter| {
            counter.count();
            Ok(())
        })
    }

    /// Stops counting.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |counter| {
            counter.stop();
            Ok(())
        })
    }

    /// Counts the rest, and returns the counts as JSON.
    fn end(&self, py: Python<'_>) -> PyResult<String> {
        let counted = self.with(py, |counter| Ok(counter.end()))?;
        let rows: Vec<_> = counted.iter().map(owned_requests_json).collect();
        Ok(serde_json::Value::from(rows).to_string())
    }

    /// Detaches. No error if already detached.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}

impl PyRequestCounter {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        action: impl FnOnce(&mut RequestCounter) -> Result<T, UserError> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| {
            let mut counter = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            counter.as_mut().map(action)
        });
        done.ok_or_else(|| PyValueError::new_err("the counter is closed"))?
            .map_err(|error| tierwise_error_of(py, &error))
    }
}

fn device_range(stretch: (u32, u32, u64, u64, u64)) -> DeviceRange {
    let (device, number, first_sector, sectors, offset_sectors) = stretch;
    DeviceRange {
        number,
        first_sector,
        sectors,
        offset_sectors,
        device,
    }
}

fn owned_requests_json(requests: &DeviceOwnerRequests) -> serde_json::Value {
    serde_json::json!({
        "device": requests.device,
        "owner": requests.owner,
        "reads": requests.counts.reads,
        "writes": requests.counts.writes,
        "flushes": requests.counts.flushes,
        "discards": requests.counts.discards,
        "read_bytes": requests.counts.read_bytes,
        "write_bytes": requests.counts.write_bytes,
    })
}
