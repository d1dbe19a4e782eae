//! Processor cost of storage, as the work states it.

use crate::storage::request_cost::{RequestCost, path_factor};

/// Processor time of storage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StorageCost {
    /// Of the kernel's threads.
    pub kernel: RequestCost,
    /// Of the server of an emulated disk, without its spinning; see `spin_ns`.
    pub server: RequestCost,
    /// Path time of a write or a flush to an emulated disk shortly after another request, without its bytes;
    /// if none is known, it equals the processor cost.
    pub path_ns: Option<f64>,
}

impl StorageCost {
    /// Time until a request, sent this long after the previous one, reaches an emulated disk, without its
    /// bytes. A read's path time equals its processor cost: the threads that return its answer slept for the
    /// device time.
    #[must_use]
    pub fn before_ns(&self, reads: bool, apart_ns: u64) -> f64 {
        if reads {
            return self.kernel.of(0, apart_ns) + self.server.of(0, apart_ns);
        }
        let costs_ns = self.kernel.request_ns + self.server.request_ns;
        self.path_ns.unwrap_or(costs_ns) * path_factor(apart_ns)
    }
}

/// How long the server of an emulated disk spins before an answer that it waited for: a tenth of the wait, 10
/// to 60 µs (crates/disk/src/service.rs).
#[must_use]
pub(crate) fn spin_ns(wait_ns: u64) -> u64 {
    (wait_ns / 10).clamp(10_000, 60_000).min(wait_ns)
}

/// Running time of the journal's thread for one commit, on a warm core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalRules {
    /// From its wakeup until the journal's blocks are sent, including earlier work of other kernel threads.
    pub begins_ns: u32,
    /// From the end of their write until the record is sent.
    pub goes_on_ns: u32,
    /// From the durable record until the caller is woken.
    pub ends_ns: u32,
    /// Between a flush and the record, and the record and a flush: in the kernel's interrupts.
    pub relays_ns: u32,
}

impl JournalRules {
    /// Defaults where a recording shows too few commits: about the middle of six recordings, see
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
