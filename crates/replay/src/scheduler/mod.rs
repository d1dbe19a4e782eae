//! Cores and run queues: which thread runs where, for how long, and what a wake-up costs. It sends no I/O.

pub(crate) mod client_service;
pub(crate) mod client_threads;
pub(crate) mod core_selection;
pub(crate) mod cores;
pub(crate) mod dispatch;
pub(crate) mod kernel_io_threads;
pub(crate) mod run_queue;
