//! Coroutines on virtual time: the event loop, the sessions' steps, arrivals and metrics.

pub(crate) mod clock;
pub(crate) mod machine;
pub(crate) mod metrics;
pub(crate) mod progress;
pub(crate) mod run;
pub(crate) mod session;
pub(crate) mod sources;
pub(crate) mod task;
