//! Measured costs of the machine that a recording was taken on.

use serde::{Deserialize, Serialize};

/// Costs of the host. Costs that could not be measured are missing: the model then takes them from the
/// events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Time from waking a thread on another, idle core until it runs there, by how long the core was idle.
    #[serde(default)]
    pub wakeup_latency: Vec<WakeupLatency>,
    /// Waking a thread on the same core and switching to it.
    #[serde(default)]
    pub context_switch_us: Option<f64>,
    /// Cost of caches that went cold.
    #[serde(default)]
    pub cache_warmup: Option<CacheWarmup>,
    /// Processor time that the measurement took.
    pub cpu_s: f64,
}

/// Latency of waking a core that was idle for a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WakeupLatency {
    /// How long the core was idle.
    pub idle_us: f64,
    /// Median of the latency.
    pub median_us: f64,
    /// 90th percentile of the latency.
    pub p90_us: f64,
}

/// A fixed workload of memory accesses and code, run again after a pause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheWarmup {
    /// Data that the workload reads.
    pub working_set_bytes: u64,
    /// Code that the workload runs, about.
    pub code_bytes: u64,
    /// Processor time of the workload where it ran just before.
    pub warm_ns: f64,
    /// Additional processor time after a pause.
    pub pauses: Vec<ColdRun>,
}

/// Additional processor time of the workload after a pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ColdRun {
    /// Length of the pause.
    pub pause_us: f64,
    /// Additional time where the core was idle meanwhile.
    pub idle_core_ns: f64,
    /// Additional time where another thread ran on the core meanwhile.
    pub shared_core_ns: f64,
}
