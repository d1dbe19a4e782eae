//! How the kernel shares cores: preemption, latency of wakeups, cold caches, switches that no event tells.
//!
//! Nothing here knows files, devices or transactions.

pub(crate) mod cache_warmup;
pub(crate) mod core_events;
pub(crate) mod missing_switches;
pub(crate) mod preemption;
pub(crate) mod waker;
pub(crate) mod wakeup_latency;
