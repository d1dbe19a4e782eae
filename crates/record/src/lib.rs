//! Kernel tracepoints become a recording.

mod calibration;
pub mod capture;
mod decoding;
mod event;
mod protocol;
mod recorder;
#[cfg(test)]
mod tests;
pub mod timeline;

pub use calibration::measure_host;
pub use event::{Event, EventKind, Opened, SwitchState};
pub use recorder::{BurstSummary, Recorder, RecorderError};
