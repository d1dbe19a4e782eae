//! Kernel tracepoints become a recording.

mod event;

pub use event::{Event, EventKind, Opened, SwitchState};
