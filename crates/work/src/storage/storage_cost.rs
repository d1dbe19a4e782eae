//! Processor time of storage: the kernel's threads for block devices and file systems, and the servers of
//! emulated disks. It grows with requests; other programs' time grows with the clock. So it is separated from
//! theirs and divided by requests and bytes. Cost per request above its usual maximum is attributed to
//! idleness, which differs from day to day (requests 4 ms apart were seen to cost the kernel 100 to 210 µs).
//! Any rest is attributed to bytes: the store of an emulated disk takes unused pages from the machine, at up
//! to 6 µs a KiB.

use std::collections::BTreeMap;

use tierwise_recording::{Block, StorageCpu};

use crate::constants::{
    BURST_MOST_FACTOR, KERNEL_REQUEST_MOST_NS, KERNEL_REQUEST_NS, PATH_MOST_FACTOR, PATH_NS,
    SERVER_REQUEST_MOST_NS, SERVER_REQUEST_NS,
};
use crate::index::view::View;
use crate::storage::request_cost::RequestTotals;
use crate::storage::request_path::path_ns;
use crate::storage::rules::spin_ns;
use crate::{RequestCost, StorageCost};

impl StorageCost {
    /// Usual cost of emulated disks, for recordings without any.
    #[must_use]
    pub fn emulated() -> Self {
        Self {
            kernel: RequestCost::each(KERNEL_REQUEST_NS.get()),
            server: RequestCost::each(SERVER_REQUEST_NS.get()),
            path_ns: None,
        }
    }
}

/// Cost of each request without the journal threads' running time; none if that was not measured, or no
/// request was sent to a device.
pub(crate) fn storage_cost(view: &View<'_>, journal_ns: f64) -> Option<StorageCost> {
    let used = used(view)?;
    let about = &view.recording.about;
    let emulated = |block: &&Block| {
        let device = about.devices.get(block.device as usize);
        device.is_some_and(|device| device.profile.is_some())
    };
    let all: Vec<&Block> = view.recording.blocks.iter().collect();
    let served: Vec<&Block> = all.iter().copied().filter(emulated).collect();
    let others_ns = beside_ns(view) + journal_ns;
    let kernel_ns = used.kernel_ns as f64 - others_ns;
    let server_ns = used.server_ns as f64 - spun_ns(view, &served);
    if all.is_empty() {
        return None;
    }
    let cost = StorageCost {
        kernel: RequestCost::fit(
            kernel_ns,
            &RequestTotals::sum(&asked(view, &all)),
            (KERNEL_REQUEST_NS.get(), KERNEL_REQUEST_MOST_NS.get()),
        ),
        server: RequestCost::fit(
            server_ns,
            &RequestTotals::sum(&asked(view, &served)),
            (SERVER_REQUEST_NS.get(), SERVER_REQUEST_MOST_NS.get()),
        ),
        path_ns: None,
    };
    let costs_ns = cost.kernel.request_ns + cost.server.request_ns;
    Some(StorageCost {
        path_ns: path_ns(view).filter(|ns| *ns <= PATH_MOST_FACTOR.get() * costs_ns),
        ..cost
    })
}

/// Time of the kernel's threads unrelated to requests: in some bursts they ran for tens of milliseconds more
/// than in all others with as many requests, to reclaim memory, for example. A burst's excess over the usual
/// is not caused by its requests.
pub(crate) fn beside_ns(view: &View<'_>) -> f64 {
    let all: Vec<&Block> = view.recording.blocks.iter().collect();
    let bursts = view.recording.about.bursts.iter();
    let used: Vec<(f64, f64)> = bursts
        .zip(asked(view, &all))
        .map(|(burst, asked)| {
            let kernel_ns = burst.storage_cpu.map_or(0, |used| used.kernel_ns) as f64;
            (kernel_ns, asked.weight)
        })
        .collect();
    beyond_usual(&used)
}

/// Time beyond the usual, given times with their requests' weights: only entries above `BURST_MOST_FACTOR`
/// times the median time per weight count.
fn beyond_usual(used: &[(f64, f64)]) -> f64 {
    let mut rates: Vec<(f64, f64)> = used
        .iter()
        .filter(|(_, weight)| *weight > 0.0)
        .map(|(ns, weight)| (ns / weight, *weight))
        .collect();
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = rates.iter().map(|rate| rate.1).sum::<f64>() / 2.0;
    let mut below = 0.0;
    let median = rates.iter().find(|(_, weight)| {
        below += weight;
        below >= half
    });
    let usual = median.map_or(0.0, |median| median.0.max(0.0));
    let beyond = used
        .iter()
        .filter(|(ns, weight)| *ns > BURST_MOST_FACTOR.get() * usual * weight);
    beyond.map(|(ns, weight)| ns - usual * weight).sum()
}

/// Requests of each burst.
fn asked(view: &View<'_>, blocks: &[&Block]) -> Vec<RequestTotals> {
    let bursts = &view.recording.about.bursts;
    let mut before: BTreeMap<u32, u64> = BTreeMap::new();
    let mut all = vec![RequestTotals::default(); bursts.len()];
    for block in blocks {
        let number = bursts.partition_point(|burst| burst.end_ns <= block.issued_ns);
        let Some(asked) = all.get_mut(number) else {
            continue;
        };
        let partition = view.recording.about.devices.get(block.device as usize);
        let disk = partition.map_or(block.device, |partition| partition.shared);
        let last_ns = before.insert(disk, block.issued_ns).unwrap_or(0);
        asked.count(block.sectors, block.issued_ns - last_ns);
    }
    all
}

/// Processor time of storage in all bursts; none if that of one burst is not known.
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

/// How long the servers of emulated disks spun. Each server has one spinning thread: it looks for the next
/// answer after each answer.
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
            let since_ns = (block.issued_ns + PATH_NS.get()).max(before_ns);
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
    fn what_one_burst_used_beside_its_requests_is_found() {
        let even: Vec<(f64, f64)> = (1..10)
            .map(|n| (36e3 * f64::from(n), f64::from(n)))
            .collect();
        assert_eq!(beyond_usual(&even), 0.0);
        let mut one_more = even.clone();
        one_more[4].0 += 50e6;
        assert!((beyond_usual(&one_more) - 50e6).abs() < 1.0);
        assert_eq!(
            beyond_usual(&[(50e6, 3.0)]),
            0.0,
            "a single burst tells nothing"
        );
        assert_eq!(beyond_usual(&[(50e6, 0.0)]), 50e6);
        assert_eq!(beyond_usual(&[]), 0.0);
    }
}
