//! Cores and run queues: which thread runs, and for how long. It sends no I/O.

pub(crate) mod client_service;
pub(crate) mod client_threads;
pub(crate) mod cores;
pub(crate) mod dispatch;
