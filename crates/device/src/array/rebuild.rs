//! Progress of a rebuild, and when its next step may begin.

use super::params::RebuildParams;
use crate::Nanos;

/// Sectors that one step of rebuilding copies: 1 MiB.
pub(super) const STEP_SECTORS: u64 = 2048;

/// A rebuild under way: while one step is written to the replacement, the next is read.
#[derive(Clone, Debug)]
pub(super) struct Rebuild {
    step_ns_idle: f64,
    step_ns_busy: f64,
    pub(super) begun: bool,
    /// Where the next step begins.
    pub(super) next: u64,
    /// When the present step began.
    pub(super) step_began: Nanos,
    /// Whether the host had requests since then.
    pub(super) host_came: bool,
    /// Steps that are being written.
    pub(super) writing: u32,
    /// Whether the next step waits for one of them.
    pub(super) waits: bool,
}

impl Rebuild {
    pub(super) fn new(params: &RebuildParams) -> Self {
        let step_ns = STEP_SECTORS as f64 * params.sector_ns;
        Self {
            step_ns_idle: step_ns,
            step_ns_busy: step_ns / params.priority,
            begun: false,
            next: 0,
            step_began: 0,
            host_came: false,
            writing: 0,
            waits: false,
        }
    }

    /// When the rate allows the next step.
    pub(super) fn next_step(&self, busy: bool) -> Nanos {
        let step_ns = if busy || self.host_came {
            self.step_ns_busy
        } else {
            self.step_ns_idle
        };
        self.step_began + step_ns as Nanos
    }
}
