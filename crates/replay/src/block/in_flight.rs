//! Requests under way, and what they cost on the way.

use tierwise_device::{Nanos, Request};
use tierwise_recording::Role;

use crate::block::io_cpu_cost::RequestCosts;

/// A request on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) job: u32,
    pub(crate) role: Role,
    pub(crate) request: Request,
    pub(crate) sent_at: Nanos,
    /// Whether it has had what its path costs.
    pub(crate) passed: bool,
    /// When it came to its device.
    pub(crate) came_at: Nanos,
    pub(crate) costs: RequestCosts,
}

/// What is to be done with the time that a request costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CpuCharge {
    /// A core is busy for it; the request is under way meanwhile.
    Concurrent,
    /// A core is busy for it, then the request comes to the store, or to its device.
    BeforeDevice(u32),
    /// A core is busy for it, then the store has the request's bytes.
    Store(u32),
    /// It passes, then the request comes to its device.
    FixedDelay(u32),
    /// A core is busy for it, then the request is answered.
    AfterDevice(u32),
}
