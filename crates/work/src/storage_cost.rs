//! What storage itself costs the processors: the kernel's threads for block devices and file systems, and the
//! servers of emulated disks. It follows the requests, so it is told from other programs' time, which follows
//! the clock, and divided by requests and bytes.

use std::collections::BTreeMap;

use tierwise_recording::{Block, StorageCpu};

use crate::view::View;

/// Processor time of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestCost {
    /// However long it is.
    pub request_ns: f64,
    /// For each KiB of it.
    pub kib_ns: f64,
}

/// Processor time of storage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StorageCost {
    /// Of the kernel's threads.
    pub kernel: RequestCost,
    /// Of the server of an emulated disk, without what it spins; see [`spin_ns`].
    pub server: RequestCost,
}

/// What a KiB costs that is copied once: 6.8 GB/s through the whole path of an emulated disk (docs/live-disk.md).
const KIB_NS: f64 = 150.0;
/// Bytes explain no more than this of what was used: requests are never free.
const MOST_BY_BYTES: f64 = 0.8;
/// What the path to an emulated disk takes of a request's time (docs/live-disk.md).
const PATH_NS: u64 = 7_500;

/// How long the server of an emulated disk spins before an answer for which it waited so long: a tenth of the
/// wait, 10 to 60 µs (crates/disk/src/service.rs).
#[must_use]
pub fn spin_ns(wait_ns: u64) -> u64 {
    (wait_ns / 10).clamp(10_000, 60_000).min(wait_ns)
}

impl RequestCost {
    /// Of a request of so many sectors.
    #[must_use]
    pub fn of(&self, sectors: u32) -> f64 {
        self.request_ns + self.kib_ns * f64::from(sectors) / 2.0
    }

    /// Requests and their KiB that took so long together.
    fn fit(used_ns: f64, requests: f64, kib: f64) -> Self {
        let by_bytes = (KIB_NS * kib).min(MOST_BY_BYTES * used_ns.max(0.0));
        Self {
            request_ns: (used_ns.max(0.0) - by_bytes) / requests.max(1.0),
            kib_ns: by_bytes / kib.max(1.0),
        }
    }
}

/// What each request cost; none where that was not measured, or nothing was asked of a device.
pub(crate) fn storage_cost(view: &View<'_>) -> Option<StorageCost> {
    let used = used(view)?;
    let about = &view.recording.about;
    let event_ns = about.cost.as_ref();
    let event_ns = event_ns.map_or(0.0, |cost| cost.event_cpu_ns.clamp(0.0, 5_000.0));
    let emulated = |block: &&Block| {
        let device = about.devices.get(block.device as usize);
        device.is_some_and(|device| device.profile.is_some())
    };
    let all: Vec<&Block> = view.recording.blocks.iter().collect();
    let served: Vec<&Block> = all.iter().copied().filter(emulated).collect();
    let fit = |used_ns: f64, blocks: &[&Block]| {
        let sectors: f64 = blocks.iter().map(|block| f64::from(block.sectors)).sum();
        RequestCost::fit(used_ns, blocks.len() as f64, sectors / 2.0)
    };
    // Each request is told of twice, mostly by the kernel's threads.
    let kernel_ns = used.kernel_ns as f64 - 2.0 * event_ns * all.len() as f64;
    (!all.is_empty()).then(|| StorageCost {
        kernel: fit(kernel_ns, &all),
        server: fit(used.server_ns as f64 - spun_ns(view, &served), &served),
    })
}

/// What storage used in all bursts; none where that of one is not known.
pub(crate) fn used(view: &View<'_>) -> Option<StorageCpu> {
    let bursts = view.recording.about.bursts.iter();
    let none = StorageCpu {
        server_ns: 0,
        kernel_ns: 0,
    };
    bursts
        .map(|burst| burst.storage_cpu)
        .try_fold(none, |sum, one| {
            one.map(|one| StorageCpu {
                server_ns: sum.server_ns.saturating_add(one.server_ns),
                kernel_ns: sum.kernel_ns.saturating_add(one.kernel_ns),
            })
        })
}

/// How long the servers of emulated disks spun. Each has one thread that does: it looks for the next answer when
/// it has given one.
fn spun_ns(view: &View<'_>, served: &[&Block]) -> f64 {
    let mut by_disk: BTreeMap<u32, Vec<&Block>> = BTreeMap::new();
    for block in served {
        let partition = &view.recording.about.devices[block.device as usize];
        by_disk.entry(partition.shared).or_default().push(block);
    }
    let of_disk = |blocks: &mut Vec<&Block>| -> u64 {
        blocks.sort_unstable_by_key(|block| block.completed_ns);
        let mut before_ns = 0;
        let spins = blocks.iter().map(|block| {
            let since_ns = (block.issued_ns + PATH_NS).max(before_ns);
            before_ns = block.completed_ns;
            spin_ns(block.completed_ns.saturating_sub(since_ns))
        });
        spins.sum()
    };
    by_disk.values_mut().map(of_disk).sum::<u64>() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_is_all_given_to_requests_and_bytes() {
        for (used, requests, kib) in [(1e9, 1e4, 4e4), (1e9, 10.0, 1e8), (0.0, 5.0, 20.0)] {
            let cost = RequestCost::fit(used, requests, kib);
            let all = cost.request_ns * requests + cost.kib_ns * kib;
            assert!((all - used).abs() <= 1e-6 * used, "{all} for {used}");
            assert!(cost.request_ns >= 0.0 && cost.kib_ns >= 0.0);
        }
        assert_eq!(RequestCost::fit(-5.0, 1.0, 1.0), RequestCost::default());
    }

    #[test]
    fn a_server_spins_no_longer_than_it_waits() {
        assert_eq!(spin_ns(4_000), 4_000);
        assert_eq!(spin_ns(50_000), 10_000);
        assert_eq!(spin_ns(300_000), 30_000);
        assert_eq!(spin_ns(8_000_000), 60_000);
    }
}
