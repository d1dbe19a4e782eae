//! What storage costs the processors, as the work states it.

use crate::storage::request_cost::{RequestCost, path_factor};

/// Processor time of storage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StorageCost {
    /// Of the kernel's threads.
    pub kernel: RequestCost,
    /// Of the server of an emulated disk, without what it spins; see `spin_ns`.
    pub server: RequestCost,
    /// How long a write or a flush is on its way to an emulated disk shortly after another request, beside its bytes;
    /// none where that does not show: as long as it costs.
    pub path_ns: Option<f64>,
}

impl StorageCost {
    /// Time that passes before a request, sent so long after the one before, comes to an emulated disk, without its
    /// bytes. A read takes as long as it costs: what brings its answer back has slept for as long as the device took.
    #[must_use]
    pub fn before_ns(&self, reads: bool, apart_ns: u64) -> f64 {
        if reads {
            return self.kernel.of(0, apart_ns) + self.server.of(0, apart_ns);
        }
        let costs_ns = self.kernel.request_ns + self.server.request_ns;
        self.path_ns.unwrap_or(costs_ns) * path_factor(apart_ns)
    }
}

/// How long the server of an emulated disk spins before an answer for which it waited so long: a tenth of the
/// wait, 10 to 60 µs (crates/disk/src/service.rs).
#[must_use]
pub(crate) fn spin_ns(wait_ns: u64) -> u64 {
    (wait_ns / 10).clamp(10_000, 60_000).min(wait_ns)
}

/// What the thread runs for one commit, were it warm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalRules {
    /// From its waking until the journal's blocks are sent, with what other threads of the kernel do before.
    pub begins_ns: u32,
    /// From when they are written until the record is sent.
    pub goes_on_ns: u32,
    /// From when that is durable until who asked is woken.
    pub ends_ns: u32,
    /// Between a flush and the record, and the record and a flush: in the kernel's interrupts.
    pub relays_ns: u32,
}

impl JournalRules {
    /// Where a recording shows too few: about the middle of what six showed, see
    /// docs/evidence/work-calibration.md.
    pub const USUAL: Self = Self {
        begins_ns: 14_000,
        goes_on_ns: 17_000,
        ends_ns: 15_000,
        relays_ns: 6_000,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_spins_no_longer_than_it_waits() {
        assert_eq!(spin_ns(4_000), 4_000);
        assert_eq!(spin_ns(50_000), 10_000);
        assert_eq!(spin_ns(300_000), 30_000);
        assert_eq!(spin_ns(8_000_000), 60_000);
    }
}
