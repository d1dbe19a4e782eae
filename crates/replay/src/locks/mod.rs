//! Waits of sessions for each other: hot locks, and signals between threads. It knows no device.

pub(crate) mod hot_locks;
pub(crate) mod lock_waits;
pub(crate) mod thread_dependencies;
