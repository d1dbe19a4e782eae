//! The failed member, and the progress of its replacement.

use crate::Nanos;
use crate::array::params::RebuildParams;

/// Which member does not hold its data.
#[derive(Clone, Debug)]
pub(super) struct Health {
    pub(super) failed: Option<usize>,
    /// Whether there is a replacement in its place.
    replaced: bool,
    /// Up to where the replacement holds data, in sectors.
    pub(super) rebuilt: u64,
}

impl Health {
    /// The first member failed, if one has; the array's times do not depend on which one.
    pub(super) fn new(degraded: bool, replaced: bool) -> Self {
        Self {
            failed: degraded.then_some(0),
            replaced,
            rebuilt: 0,
        }
    }

    /// As [`Health::new`] for any member, without a replacement.
    #[cfg(test)]
    pub(super) fn of(failed: Option<usize>) -> Self {
        Self {
            failed,
            ..Self::new(false, false)
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.failed.is_none()
    }

    /// The member that lacks data somewhere below `end`, a sector of members.
    pub(super) fn missing_below(&self, end: u64) -> Option<usize> {
        self.failed.filter(|_| end > self.rebuilt)
    }

    /// The member that takes no writes from `start` on.
    pub(super) fn missing_from(&self, start: u64) -> Option<usize> {
        self.failed.filter(|_| start >= self.rebuilt)
    }

    /// The place where there is no member at all.
    pub(super) fn absent(&self) -> Option<usize> {
        self.failed.filter(|_| !self.replaced)
    }
}

// Progress of a rebuild, and when its next step may begin.

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
