//! Coroutines on virtual time: the event loop, the sessions' steps, arrivals and metrics.

pub(crate) mod arrivals;
pub(crate) mod clock;
pub(crate) mod machine;
pub(crate) mod metrics;
pub(crate) mod progress_watch;
pub(crate) mod session;
pub(crate) mod simulation_run;
pub(crate) mod task;
