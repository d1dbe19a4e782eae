//! Stations at which sessions wait for each other: cores, client threads, the log, syncs, locks. They send requests
//! through `block`.

pub(crate) mod client_threads;
pub(crate) mod cores;
pub(crate) mod locks;
pub(crate) mod log;
pub(crate) mod log_replica;
pub(crate) mod session_signals;
pub(crate) mod sync;
