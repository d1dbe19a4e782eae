//! How the kernel shares cores: home cores, preemption, wakeup latency, cold caches, unreported switches.
//!
//! Nothing here depends on files, devices or transactions.

pub(crate) mod cache_warmup;
pub(crate) mod core_coldness;
pub(crate) mod core_events;
pub(crate) mod home_cores;
pub(crate) mod missing_switches;
pub(crate) mod preemption;
pub(crate) mod waker;
pub(crate) mod wakeup_latency;
