//! Kernel tracepoints become a recording.

pub mod capture;
mod event;
pub mod timeline;

pub use event::{Event, EventKind, Opened, SwitchState};
