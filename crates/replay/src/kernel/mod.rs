//! The event loop: virtual time, the sessions' operations, metrics. It routes events to the other modules and
//! models no device, core, cache or lock itself.

pub(crate) mod arrivals;
pub(crate) mod events;
pub(crate) mod interpreter;
pub(crate) mod joint;
pub(crate) mod metrics;
pub(crate) mod paced_sessions;
pub(crate) mod progress;
pub(crate) mod run;
pub(crate) mod session;
pub(crate) mod simulation;
