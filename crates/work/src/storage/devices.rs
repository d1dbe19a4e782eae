//! The devices of the recording: the roles on them and their recorded times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tierwise_recording::{Block, BlockOp, Role};

use crate::view::View;
use crate::{RecordedDevice, RecordedRequest};

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
    devices.extend(unknown(view));
    devices
}

fn device(view: &View<'_>, shared: u32) -> RecordedDevice {
    let partitions = &view.recording.about.devices;
    let ours = |index: u32| {
        let partition = partitions.get(index as usize);
        partition.is_some_and(|partition| partition.shared == shared)
    };
    let mut all = partitions.iter();
    let first = all.find(|partition| partition.shared == shared);
    let blocks = view.recording.blocks.iter();
    let requests = requests(view, blocks.filter(|block| ours(block.device)));
    let of = |op: BlockOp| -> Vec<RecordedRequest> {
        let flushed_before = |block: &Block| block.preflush && op != BlockOp::Flush;
        let requests = requests.iter();
        let ours = requests.filter(|(block, _)| block.op == op && !flushed_before(block));
        sample(ours.map(|(_, request)| *request).collect())
    };
    let regions = view.address_space.regions.iter();
    let roles: Vec<(Role, u64, u64)> = regions
        .filter(|(_, region)| ours(region.device))
        .map(|(role, region)| {
            let start = partitions[region.device as usize].first_sector;
            (*role, start.saturating_add(region.origin), region.sectors)
        })
        .collect();
    // A stranger's emulated disk that is merely mounted says nothing about the recorded devices.
    let emulated = first.filter(|_| !roles.is_empty());
    RecordedDevice {
        profile: emulated.and_then(|partition| partition.profile.clone()),
        path_ns: emulated.and_then(|partition| Some((partition.path_us? * 1e3) as u64)),
        reads: of(BlockOp::Read),
        writes: of(BlockOp::Write),
        flushes: of(BlockOp::Flush),
        roles,
        write_cache: first.is_some_and(|partition| partition.write_cache),
    }
}

/// A device for the roles on no known device, one after the other; none if there are no such roles.
fn unknown(view: &View<'_>) -> Option<RecordedDevice> {
    let known = view.recording.about.devices.len();
    let regions = view.address_space.regions.iter();
    let homeless = regions.filter(|(_, region)| region.device as usize >= known);
    let mut next = 0;
    let mut roles = Vec::new();
    for (role, region) in homeless {
        roles.push((*role, next, region.sectors));
        next += region.sectors.next_multiple_of(2048);
    }
    (!roles.is_empty()).then(|| RecordedDevice {
        roles,
        ..RecordedDevice::default()
    })
}

/// Requests in order of issue, each with the number of others under way when it was issued.
fn requests<'a>(
    view: &View<'_>,
    blocks: impl Iterator<Item = &'a Block>,
) -> Vec<(&'a Block, RecordedRequest)> {
    let mut under_way: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    let request = |block: &'a Block| {
        let done = |done: &Reverse<u64>| done.0 <= block.issued_ns;
        while under_way.peek().is_some_and(done) {
            under_way.pop();
        }
        let depth = under_way.len() as u32;
        under_way.push(Reverse(block.completed_ns));
        let request = RecordedRequest {
            sectors: block.sectors,
            depth,
            time_ns: waited_ns(view, block),
            log: view.role(block.file) == Some(Role::Log),
        };
        (block, request)
    };
    blocks.map(request).collect()
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
