//! Limits of a machine for all its network volumes together, as a request gives them.

use serde::Deserialize;
use tierwise_device::volume::{InstanceGate, InstanceLimits, InstanceRates};

use tierwise_recording::UserError;

/// The limits, and which recorded devices stand behind them beside those whose profiles are volumes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// I/Os per second that the machine sustains.
    pub iops: f64,
    /// 10⁶ bytes per second that it sustains.
    pub mb_per_s: f64,
    /// What it reaches for a time; none without a burst.
    #[serde(default)]
    pub burst: Option<InstanceBurst>,
    /// Indexes of recorded devices without a profile that are network volumes.
    #[serde(default)]
    pub recorded: Vec<usize>,
}

/// A burst of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceBurst {
    /// I/Os per second.
    pub iops: f64,
    /// 10⁶ bytes per second.
    pub mb_per_s: f64,
    /// How long it lasts from full credits, in seconds.
    pub time_s: f64,
}

impl Instance {
    /// The gate; `spent`: without credits for a burst, as steady load leaves it.
    pub(crate) fn gate(&self, spent: bool) -> Result<InstanceGate, UserError> {
        let rates = |iops, mb_per_s| InstanceRates { iops, mb_per_s };
        let limits = InstanceLimits {
            baseline: rates(self.iops, self.mb_per_s),
            burst: self
                .burst
                .map(|burst| (rates(burst.iops, burst.mb_per_s), burst.time_s)),
        };
        InstanceGate::new(&limits, spent).map_err(|error| UserError::new(error.message, error.fix))
    }
}
