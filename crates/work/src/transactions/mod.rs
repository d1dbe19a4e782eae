//! Turns, commits, sessions, locks: requests of clients, and dependencies between sessions.
//!
//! Nothing here writes steps.

pub(crate) mod arrivals;
pub(crate) mod boundaries;
pub(crate) mod database_lock;
pub(crate) mod hot_locks;
pub(crate) mod observed;
pub(crate) mod sessions;
pub(crate) mod thread_dependencies;
pub(crate) mod turns;
