//! The devices of the recording: the roles on them and their recorded times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tierwise_recording::{Block, BlockOp, Role};

use crate::index::address_space::Region;
use crate::index::view::View;
use crate::{Partition, RecordedDevice, RecordedRequest};

/// Service times kept per kind.
const MOST_TIMES: usize = 20_000;

/// Every physical device, with its partitions combined; files on no known device lie on one more at the end.
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
    let requests = requests(view, &blocks);
    let of = |op: BlockOp| -> Vec<RecordedRequest> {
        let flushed_before = |block: &Block| block.preflush && op != BlockOp::Flush;
        let pairs = blocks.iter().zip(&requests);
        let ours = pairs.filter(|(block, _)| block.op == op && !flushed_before(block));
        sample(ours.map(|(_, request)| *request).collect())
    };
    let roles: Vec<_> = view
        .address_space
        .regions()
        .filter(|(_, region)| ours(region.device))
        .map(|(role, region)| {
            let start = partitions[region.device as usize].first_sector;
            (role, start.saturating_add(region.origin), region.sectors)
        })
        .collect();
    RecordedDevice {
        // A stranger's emulated disk that is merely mounted says nothing about the recorded devices.
        profile: first
            .filter(|_| !roles.is_empty())
            .and_then(|partition| partition.profile.clone()),
        reads: of(BlockOp::Read),
        writes: of(BlockOp::Write),
        flushes: of(BlockOp::Flush),
        roles,
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

/// A device with known roles only, placed one after the other.
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

/// Requests in order of issue, each with the number of others under way when it was issued.
fn requests(view: &View<'_>, blocks: &[&Block]) -> Vec<RecordedRequest> {
    let mut under_way: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    let request = |block: &&Block| {
        while under_way
            .peek()
            .is_some_and(|done| done.0 <= block.issued_ns)
        {
            under_way.pop();
        }
        let depth = under_way.len() as u32;
        under_way.push(Reverse(block.completed_ns));
        RecordedRequest {
            sectors: block.sectors,
            depth,
            time_ns: waited_ns(view, block),
            log: view.role(block.file) == Some(Role::Log),
        }
    };
    blocks.iter().map(request).collect()
}

/// Time of a request less its sender's running time in between, which is part of the sender's own processor
/// time.
fn waited_ns(view: &View<'_>, block: &Block) -> u64 {
    let took_ns = block.completed_ns.saturating_sub(block.issued_ns);
    if took_ns == 0 || view.class(block.thread).is_none() {
        return took_ns;
    }
    let ran_ns = view.on_core_ns(block.thread, block.issued_ns, block.completed_ns);
    took_ns.saturating_sub(ran_ns)
}

/// Evenly sampled members of a list that is too long.
pub(crate) fn sample<T: Copy>(all: Vec<T>) -> Vec<T> {
    let step = all.len().div_ceil(MOST_TIMES).max(1);
    all.into_iter().step_by(step).collect()
}
