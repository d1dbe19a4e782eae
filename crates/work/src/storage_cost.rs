//! What storage itself costs the processors: the kernel's threads for block devices and file systems, and the
//! servers of emulated disks. It follows the requests, so it is told from other programs' time, which follows
//! the clock, and divided by requests and bytes.

use std::collections::BTreeMap;

use tierwise_recording::{Block, StorageCpu};

use crate::view::View;

/// Processor time of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestCost {
    /// However long it is, a tenth of a millisecond after the one before.
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

/// What one request costs at most, a tenth of a millisecond after the one before: the kernel's threads and the
/// server of an emulated disk. What is beyond it is put down to bytes: the store of an emulated disk takes pages
/// that were never used from the machine, at up to 6 µs a KiB. Seen were 33 to 37 µs and 8 to 10 µs.
const MOST_NS: (f64, f64) = (50_000.0, 15_000.0);
/// Time between requests at which their cost is stated.
const APART_NS: f64 = 100_000.0;
/// The least and the most that a request costs of that.
const FACTORS: (f64, f64) = (0.5, 5.0);

/// What an emulated disk's server makes good of the path to it: what that took when the disk was made, 14 to 60 µs on
/// 107 disks on a quiet machine, 57 in the median (python/tierwise/host/disk_path.py).
pub const PATH_NS: u64 = 57_000;

/// How long the server of an emulated disk spins before an answer for which it waited so long: a tenth of the
/// wait, 10 to 60 µs (crates/disk/src/service.rs).
#[must_use]
pub fn spin_ns(wait_ns: u64) -> u64 {
    (wait_ns / 10).clamp(10_000, 60_000).min(wait_ns)
}

/// How much more a request costs the later it follows the one before on its device: threads and caches are cold.
/// Measured on a quiet machine, the kernel's threads under order entry: 34 µs for requests 0.1 ms apart, 45 for
/// 0.18, 56 for 0.39, 105 to 120 for 4.2 ms: the cube root.
fn idle_factor(apart_ns: u64) -> f64 {
    (apart_ns as f64 / APART_NS)
        .cbrt()
        .clamp(FACTORS.0, FACTORS.1)
}

impl RequestCost {
    /// Of a request of so many sectors, so long after the one before.
    #[must_use]
    pub fn of(&self, sectors: u32, apart_ns: u64) -> f64 {
        self.request_ns * idle_factor(apart_ns) + self.kib_ns * f64::from(sectors) / 2.0
    }

    /// Requests that took so long together; `weight` is the sum of their factors.
    fn fit(used_ns: f64, weight: f64, kib: f64, most_ns: f64) -> Self {
        let used_ns = used_ns.max(0.0);
        let request_ns = used_ns / weight.max(FACTORS.0);
        if kib <= 0.0 || request_ns <= most_ns {
            return Self {
                request_ns,
                kib_ns: 0.0,
            };
        }
        Self {
            request_ns: most_ns,
            kib_ns: (used_ns - most_ns * weight) / kib,
        }
    }
}

/// What each request cost; none where that was not measured, or nothing was asked of a device.
pub(crate) fn storage_cost(view: &View<'_>) -> Option<StorageCost> {
    let used = used(view)?;
    let about = &view.recording.about;
    let emulated = |block: &&Block| {
        let device = about.devices.get(block.device as usize);
        device.is_some_and(|device| device.profile.is_some())
    };
    let all: Vec<&Block> = view.recording.blocks.iter().collect();
    let served: Vec<&Block> = all.iter().copied().filter(emulated).collect();
    let fit = |used_ns: f64, blocks: &[&Block], most_ns: f64| {
        let sectors: f64 = blocks.iter().map(|block| f64::from(block.sectors)).sum();
        RequestCost::fit(used_ns, weight(view, blocks), sectors / 2.0, most_ns)
    };
    // Each request is told of twice, mostly by the kernel's threads.
    let kernel_ns = used.kernel_ns as f64 - 2.0 * view.event_ns() * all.len() as f64;
    let server_ns = used.server_ns as f64 - spun_ns(view, &served);
    (!all.is_empty()).then(|| StorageCost {
        kernel: fit(kernel_ns, &all, MOST_NS.0),
        server: fit(server_ns, &served, MOST_NS.1),
    })
}

/// The sum of what requests cost, each in what it would cost a tenth of a millisecond after the one before.
fn weight(view: &View<'_>, blocks: &[&Block]) -> f64 {
    let mut before: BTreeMap<u32, u64> = BTreeMap::new();
    let factor = |block: &&Block| {
        let partition = view.recording.about.devices.get(block.device as usize);
        let disk = partition.map_or(block.device, |partition| partition.shared);
        let last_ns = before.insert(disk, block.issued_ns).unwrap_or(0);
        idle_factor(block.issued_ns - last_ns)
    };
    blocks.iter().map(factor).sum()
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
        for (used, weight, kib) in [
            (1e9, 1e4, 4e4),
            (1e9, 10.0, 1e8),
            (0.0, 5.0, 20.0),
            (1e6, 1.0, 0.0),
        ] {
            let cost = RequestCost::fit(used, weight, kib, 50_000.0);
            let all = cost.request_ns * weight + cost.kib_ns * kib;
            assert!((all - used).abs() <= 1e-6 * used, "{all} for {used}");
            assert!(cost.request_ns >= 0.0 && cost.kib_ns >= 0.0);
        }
        assert_eq!(
            RequestCost::fit(-5.0, 1.0, 1.0, 1.0),
            RequestCost::default()
        );
    }

    #[test]
    fn requests_far_apart_cost_more() {
        let cost = RequestCost {
            request_ns: 34_000.0,
            kib_ns: 0.0,
        };
        let at = |apart_us: u64| cost.of(16, apart_us * 1000);
        assert!((at(100) - 34_000.0).abs() < 1.0);
        assert!((105_000.0..125_000.0).contains(&at(4_200)), "{}", at(4_200));
        assert!(at(0) > 0.0 && at(0) < at(100) && at(1_000_000) < 6.0 * at(100));
    }

    #[test]
    fn a_server_spins_no_longer_than_it_waits() {
        assert_eq!(spin_ns(4_000), 4_000);
        assert_eq!(spin_ns(50_000), 10_000);
        assert_eq!(spin_ns(300_000), 30_000);
        assert_eq!(spin_ns(8_000_000), 60_000);
    }
}
