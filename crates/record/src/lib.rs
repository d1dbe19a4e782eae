//! Turns kernel tracepoints into a recording.

mod calibration;
pub mod capture;
mod decoding;
mod event;
mod foreign_cpu;
mod protocol;
mod recorder;
mod request_counter;
#[cfg(test)]
mod tests;
pub mod timeline;

pub use calibration::measure_host;
pub use event::{Event, EventKind, Opened, SwitchState};
pub use recorder::{BurstSummary, Recorder, RecorderError, Trial};
pub use request_counter::{OwnedRequests, RequestCounter, RequestCounts};
