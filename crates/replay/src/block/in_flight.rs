//! Requests under way.

use tierwise_device::{Nanos, Request};
use tierwise_recording::Role;

/// A request under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) job: u32,
    pub(crate) role: Role,
    pub(crate) request: Request,
    pub(crate) sent_at: Nanos,
}
