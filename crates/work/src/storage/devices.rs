//! The devices of the recording: what lies where on them, and the times they took.

use std::collections::BTreeMap;

use tierwise_recording::{Block, BlockOp, Role};

use crate::index::address_space::Region;
use crate::index::view::View;
use crate::{Partition, RecordedDevice};

/// Service times that are kept of each kind.
const MOST_TIMES: usize = 20_000;

/// Every physical device, partitions put together; files on no known device lie on one more at the end.
pub(crate) fn devices(view: &View<'_>) -> Vec<RecordedDevice> {
    let partitions = &view.recording.about.devices;
    let mut order: Vec<u32> = Vec::new();
    for partition in partitions {
        if !order.contains(&partition.shared) {
            order.push(partition.shared);
        }
    }
    let mut devices: Vec<RecordedDevice> = order.iter().map(|&s| device(view, s)).collect();
    let homeless: Vec<_> = view
        .address_space
        .regions()
        .filter(|(_, region)| region.device as usize >= partitions.len())
        .collect();
    if !homeless.is_empty() {
        devices.push(unknown(&homeless));
    }
    devices
}

fn device(view: &View<'_>, shared: u32) -> RecordedDevice {
    let partitions = &view.recording.about.devices;
    let ours = |index: u32| {
        partitions
            .get(index as usize)
            .is_some_and(|partition| partition.shared == shared)
    };
    let first = partitions
        .iter()
        .find(|partition| partition.shared == shared);
    let blocks: Vec<&Block> = view
        .recording
        .blocks
        .iter()
        .filter(|b| ours(b.device))
        .collect();
    let sized = |op: BlockOp| -> Vec<(u32, u64)> {
        let times = blocks
            .iter()
            .filter(|block| block.op == op && !block.preflush);
        sample(
            times
                .map(|block| (block.sectors, service_ns(block)))
                .collect(),
        )
    };
    let flushes = blocks.iter().filter(|block| block.op == BlockOp::Flush);
    RecordedDevice {
        profile: first.and_then(|partition| partition.profile.clone()),
        reads: sized(BlockOp::Read),
        writes: sized(BlockOp::Write),
        flushes: sample(flushes.map(|block| service_ns(block)).collect()),
        depth: depth(&blocks),
        roles: view
            .address_space
            .regions()
            .filter(|(_, region)| ours(region.device))
            .map(|(role, region)| {
                let start = partitions[region.device as usize].first_sector;
                (role, start.saturating_add(region.origin), region.sectors)
            })
            .collect(),
        write_cache: first.is_some_and(|partition| partition.write_cache),
    }
}

/// Partitions that hold one role alone.
pub(crate) fn partitions(view: &View<'_>) -> Vec<Partition> {
    let known = &view.recording.about.devices;
    let alone = view
        .address_space
        .regions()
        .filter(|(role, region)| view.address_space.is_alone(*role, region.device));
    alone
        .filter_map(|(role, region)| {
            let partition = known.get(region.device as usize)?;
            Some(Partition {
                role,
                first_sector: partition.first_sector,
                before: region.origin,
                sectors: partition
                    .sectors
                    .max(region.origin.saturating_add(region.sectors)),
            })
        })
        .collect()
}

/// A device of which nothing is known but what lies on it, one role behind the other.
fn unknown(regions: &[(Role, &Region)]) -> RecordedDevice {
    let mut next = 0;
    let mut roles = Vec::new();
    for (role, region) in regions {
        roles.push((*role, next, region.sectors));
        next += region.sectors.next_multiple_of(2048);
    }
    RecordedDevice {
        roles,
        ..RecordedDevice::default()
    }
}

fn service_ns(block: &Block) -> u64 {
    block.completed_ns.saturating_sub(block.issued_ns)
}

/// Evenly spread members of a list that is too long.
pub(crate) fn sample<T: Copy>(all: Vec<T>) -> Vec<T> {
    let step = all.len().div_ceil(MOST_TIMES).max(1);
    all.into_iter().step_by(step).collect()
}

/// Most requests that were under way together.
fn depth(blocks: &[&Block]) -> u32 {
    let mut changes: BTreeMap<u64, i64> = BTreeMap::new();
    for block in blocks {
        *changes.entry(block.issued_ns).or_default() += 1;
        *changes.entry(block.completed_ns).or_default() -= 1;
    }
    let (mut now, mut most) = (0, 0);
    for change in changes.into_values() {
        now += change;
        most = most.max(now);
    }
    u32::try_from(most).unwrap_or(0)
}
