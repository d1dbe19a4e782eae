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
    /// Beyond that, as often as the request costs more than once for the time since the one before.
    pub idle_ns: f64,
}

/// Processor time of storage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StorageCost {
    /// Of the kernel's threads.
    pub kernel: RequestCost,
    /// Of the server of an emulated disk, without what it spins; see [`spin_ns`].
    pub server: RequestCost,
}

/// What one request usually costs, and at most, a tenth of a millisecond after the one before: the kernel's threads
/// (seen were 28 to 38 µs), and the server of an emulated disk (8 to 12). What is beyond is put down to idleness, which
/// differs from day to day (requests 4 ms apart were seen to cost the kernel 100 to 210 µs), and what that cannot
/// explain to bytes: the store of an emulated disk takes pages that were never used from the machine, at up to 6 µs a
/// KiB.
const KERNEL_NS: (f64, f64) = (36_000.0, 50_000.0);
const SERVER_NS: (f64, f64) = (10_000.0, 15_000.0);
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
        let factor = idle_factor(apart_ns);
        self.request_ns * factor
            + self.idle_ns * (factor - 1.0).max(0.0)
            + self.kib_ns * f64::from(sectors) / 2.0
    }

    /// Requests that took so long together, each so much of what it usually and at most costs.
    fn fit(used_ns: f64, asked: Asked, (usual_ns, most_ns): (f64, f64)) -> Self {
        let used_ns = used_ns.max(0.0);
        let weight = asked.weight.max(FACTORS.0);
        let even_ns = used_ns / weight;
        if even_ns <= usual_ns || asked.kib <= 0.0 {
            return Self {
                request_ns: even_ns,
                ..Self::default()
            };
        }
        let left_ns = used_ns - usual_ns * weight;
        let idle_ns = (left_ns / asked.idle.max(f64::MIN_POSITIVE)).min(usual_ns);
        let left_ns = left_ns - idle_ns * asked.idle;
        let more_ns = (left_ns / weight).min(most_ns - usual_ns);
        Self {
            request_ns: usual_ns + more_ns,
            kib_ns: (left_ns - more_ns * weight).max(0.0) / asked.kib,
            idle_ns,
        }
    }
}

/// What was asked of devices, in what it costs.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    /// The sum of what requests cost by the time since the ones before, each in what it would a tenth of a
    /// millisecond after it.
    weight: f64,
    /// The sum of what those cost beyond one that were further apart.
    idle: f64,
    kib: f64,
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
    // Each request is told of twice, mostly by the kernel's threads.
    let kernel_ns = used.kernel_ns as f64 - 2.0 * view.event_ns() * all.len() as f64;
    let server_ns = used.server_ns as f64 - spun_ns(view, &served);
    (!all.is_empty()).then(|| StorageCost {
        kernel: RequestCost::fit(kernel_ns, asked(view, &all), KERNEL_NS),
        server: RequestCost::fit(server_ns, asked(view, &served), SERVER_NS),
    })
}

fn asked(view: &View<'_>, blocks: &[&Block]) -> Asked {
    let mut before: BTreeMap<u32, u64> = BTreeMap::new();
    let mut asked = Asked::default();
    for block in blocks {
        let partition = view.recording.about.devices.get(block.device as usize);
        let disk = partition.map_or(block.device, |partition| partition.shared);
        let last_ns = before.insert(disk, block.issued_ns).unwrap_or(0);
        let factor = idle_factor(block.issued_ns - last_ns);
        asked.weight += factor;
        asked.idle += (factor - 1.0).max(0.0);
        asked.kib += f64::from(block.sectors) / 2.0;
    }
    asked
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
        for (used, weight, idle, kib) in [
            (1e9, 1e4, 0.0, 4e4),
            (1e9, 1e4, 7e3, 4e4),
            (1e9, 10.0, 2.0, 1e8),
            (0.0, 5.0, 0.0, 20.0),
            (1e6, 1.0, 0.0, 0.0),
        ] {
            let asked = Asked { weight, idle, kib };
            let cost = RequestCost::fit(used, asked, KERNEL_NS);
            let all = cost.request_ns * weight + cost.idle_ns * idle + cost.kib_ns * kib;
            assert!((all - used).abs() <= 1e-6 * used, "{all} for {used}");
            assert!(cost.request_ns >= 0.0 && cost.kib_ns >= 0.0 && cost.idle_ns >= 0.0);
        }
        let nothing = RequestCost::fit(-5.0, Asked::default(), KERNEL_NS);
        assert_eq!(nothing, RequestCost::default());
    }

    #[test]
    fn what_small_requests_far_apart_cost_is_no_cost_of_those_side_by_side() {
        let (requests, factor) = (1000.0, 3.3);
        let asked = Asked {
            weight: requests * factor,
            idle: requests * (factor - 1.0),
            kib: requests * 9.0,
        };
        let cost = RequestCost::fit(requests * 190_000.0, asked, KERNEL_NS);
        assert!((cost.of(18, 3_600_000) - 190_000.0).abs() < 2_000.0);
        assert!(cost.of(18, 100_000) < 40_000.0 && cost.kib_ns == 0.0);
    }

    #[test]
    fn requests_far_apart_cost_more() {
        let cost = RequestCost {
            request_ns: 34_000.0,
            ..RequestCost::default()
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
