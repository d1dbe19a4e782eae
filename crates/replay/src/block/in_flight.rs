//! Requests under way, and the processor time they cost.

use tierwise_device::{Nanos, Request};
use tierwise_recording::Role;

use crate::block::io_cpu_cost::RequestCosts;

/// A request under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) job: u32,
    pub(crate) role: Role,
    pub(crate) request: Request,
    pub(crate) sent_at: Nanos,
    /// Whether it has passed the path.
    pub(crate) passed: bool,
    pub(crate) costs: RequestCosts,
}

/// Processor time charged for a request, and what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CpuCharge {
    /// Runs while the request is under way.
    Concurrent,
    /// Runs before the request arrives at the store or the device.
    BeforeDevice(u32),
    /// Runs until the store has copied the request's bytes.
    Store(u32),
    /// A delay without a core, before the request arrives at its device.
    FixedDelay(u32),
    /// Runs before the request is completed.
    AfterDevice(u32),
}
