//! Kernel tracepoints become a recording.

pub mod capture;
mod decoding;
mod event;
mod protocol;
mod recorder;
pub mod timeline;

pub use event::{Event, EventKind, Opened, SwitchState};
pub use recorder::{BurstSummary, Recorder, RecorderError};
