//! Devices, and the device requests of syncs.
//!
//! Nothing here depends on a file's purpose beyond its role.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use tierwise_recording::{
    Block, BlockOp, Call, Device, PAGE_BYTES, PAGE_SECTORS, Role, Thread, ThreadClass, UNKNOWN,
};

use crate::page_cache::FirstWrites;
use crate::recording_rows::RecordingRows;
use crate::recording_view::RecordingView;
use crate::{EmulatedPath, RecordedDevice, RecordedRequest, Step, SyncRequests};

// Syncs: their device requests, from the block requests during them, and their steps.

/// Largest number of writes in a script; more are merged: a sync of a whole file is described by its dirty
/// pages anyway.
const MOST_WRITES: usize = 512;
/// Journal writes of a sync of a file that grew, where no block request shows it: the changes, and their
/// commit record.
const JOURNAL: [(u64, u32); 2] = [(0, 32), (32, 8)];
const EMPTY_RANGE: (u64, u64) = (1, 1);

/// The syncs of files other than the log, with the files' state.
pub(crate) struct FileSyncs {
    /// Scripts, in the order of syncs.
    pub(crate) scripts: Vec<SyncRequests>,
    dirtied: FirstWrites,
    written: BTreeMap<u32, FileWrites>,
    /// Of each directory that was synced, a file in it that has a role.
    directories: BTreeMap<u32, Option<u32>>,
}

/// Writes of calls to one file.
#[derive(Default)]
struct FileWrites {
    /// End of the written part of the file, if it was written.
    end: Option<u64>,
    /// Whether writes since its last sync extended it.
    grew: bool,
    /// Sectors of whole pages written since its last sync; neighbouring small writes count once.
    sectors: u64,
    last_page: Option<u64>,
}

impl FileSyncs {
    pub(crate) fn new(view: &RecordingView<'_>) -> Self {
        Self {
            scripts: Vec::new(),
            dirtied: FirstWrites::new(view),
            written: BTreeMap::new(),
            directories: BTreeMap::new(),
        }
    }

    /// The step of a call that syncs a file.
    pub(crate) fn sync(&mut self, view: &RecordingView<'_>, role: Role, call: &Call) -> Step {
        let written = self.written.entry(call.file).or_default();
        let sectors = std::mem::take(&mut written.sectors);
        let grew = std::mem::take(&mut written.grew);
        written.last_page = None;
        let mut script = match view.sees(view.device_of(call.file)) {
            true => sync_script(view, role, call),
            false => assumed_sync_script(grew),
        };
        self.leave_out_dirty(view, role, call, &mut script.writes, sectors);
        script.range = view.address_space.range_of(call.file);
        script.shared = view.engine.second_log == Some(role);
        let script = self.add(script);
        Step::Sync { role, script }
    }

    /// The step of a call that syncs a directory: names of files in it. It writes to the journal of their
    /// file system, and no data.
    pub(crate) fn sync_directory(&mut self, view: &RecordingView<'_>, call: &Call) -> Option<Step> {
        let found = self.directories.entry(call.file);
        let file = (*found.or_insert_with(|| role_file_within(view, call.file)))?;
        let (role, device) = (view.role(file)?, view.device_of(file));
        let mut script = match view.sees(device) {
            true => sync_script_on_device(view, role, device, call),
            false => assumed_sync_script(true),
        };
        script.writes.clear();
        script.range = EMPTY_RANGE;
        let script = self.add(script);
        Some(Step::Sync { role, script })
    }

    /// Drops writes that a replay's sync makes because a step dirtied the pages. A file that is recreated for
    /// each transaction lies elsewhere each time, so its own writes are dropped up to the size of the calls'
    /// writes to it, `left` sectors.
    fn leave_out_dirty(
        &self,
        view: &RecordingView<'_>,
        role: Role,
        call: &Call,
        writes: &mut Vec<(u64, u32)>,
        mut left: u64,
    ) {
        let count = writes.len();
        writes.retain(|&(at, sectors)| !self.dirtied.before((role, at, sectors), call.end_ns));
        if left == 0 || writes.is_empty() || writes.len() < count {
            return;
        }
        let blocks = view.blocks_during(call).iter();
        let own: Vec<u64> = blocks
            .filter(|block| block.op == BlockOp::Write && block.file == call.file)
            .filter_map(|block| view.address_space.sector_of(role, block))
            .collect();
        writes.retain(|&(sector, sectors)| {
            let again = own.contains(&sector) && u64::from(sectors) <= left;
            left -= if again { u64::from(sectors) } else { 0 };
            !again
        });
    }

    pub(crate) fn add(&mut self, script: SyncRequests) -> u32 {
        self.scripts.push(script);
        self.scripts.len() as u32 - 1
    }

    /// A file is written: updates its end.
    pub(crate) fn grow(&mut self, call: &Call) {
        let from = call.offset_bytes;
        if from == UNKNOWN {
            return;
        }
        let end = from.saturating_add(call.size_bytes);
        let written = self.written.entry(call.file).or_default();
        let (first, last) = (from / PAGE_BYTES, end.saturating_sub(1) / PAGE_BYTES);
        let again = written.last_page.replace(last) == Some(first);
        let pages = (last.saturating_sub(first) + 1) - u64::from(again);
        written.sectors = written.sectors.saturating_add(pages * PAGE_SECTORS);
        written.grew |= written.end.is_some_and(|before| end > before);
        written.end = written.end.max(Some(end));
    }
}

/// A file with a role in a directory.
fn role_file_within(rows: &RecordingRows<'_>, directory: u32) -> Option<u32> {
    let files = &rows.recording.files;
    let folder = files.get(directory as usize)?.path.trim_end_matches('/');
    let within = |path: &str| {
        let rest = path.strip_prefix(folder);
        let name = rest.and_then(|rest| rest.strip_prefix('/'));
        name.is_some_and(|name| !name.contains('/'))
    };
    let mut found = (0..).zip(files);
    let found = found.find(|(_, file)| file.role.is_some() && within(&file.path));
    found.map(|(number, _)| number)
}

/// The script of one sync of a file of a role.
pub(crate) fn sync_script(view: &RecordingView<'_>, role: Role, call: &Call) -> SyncRequests {
    sync_script_on_device(view, role, view.device_of(call.file), call)
}

/// The same, of an object on a device.
fn sync_script_on_device(
    view: &RecordingView<'_>,
    role: Role,
    device: u32,
    call: &Call,
) -> SyncRequests {
    let mut script = SyncRequests {
        by_caller: true,
        ..SyncRequests::default()
    };
    let (mut flushes, mut forced) = (0, 0);
    let data_ns = data_written_at(view, call);
    for block in view.blocks_during(call) {
        let anothers = !is_sync_data(view, call, block) && block.issued_ns < data_ns;
        if block.device != device || anothers || !belongs_to_sync(view, role, call, block) {
            continue;
        }
        if block.op == BlockOp::Flush {
            flushes += 1;
            continue;
        }
        forced += u32::from(block.fua) + u32::from(block.preflush);
        let Some(sector) = view.address_space.sector_of(role, block) else {
            continue;
        };
        let list = match view.role(block.file).is_none() && is_metadata_request(view, block) {
            true => {
                script.by_caller &= block.thread == call.thread;
                &mut script.journal_writes
            }
            false => &mut script.writes,
        };
        if list.len() < MOST_WRITES {
            list.push((sector, block.sectors));
        }
    }
    let journal = !script.journal_writes.is_empty();
    script.by_caller &= journal;
    script.flushes = if flushes > 0 { flushes } else { forced };
    if journal || !script.writes.is_empty() {
        let by_thread = journal && !script.by_caller;
        script.flushes = script.flushes.max(1 + u32::from(by_thread));
    }
    script
}

/// The script where no block requests are known: the device waits for the written data, and once more for the
/// journal if the file grew.
pub(crate) fn assumed_sync_script(grew: bool) -> SyncRequests {
    SyncRequests {
        flushes: 1 + u32::from(grew),
        journal_writes: if grew { JOURNAL.to_vec() } else { Vec::new() },
        ..SyncRequests::default()
    }
}

/// Whether a request writes a sync's data, rather than file system metadata.
fn is_sync_data(view: &RecordingView<'_>, call: &Call, block: &Block) -> bool {
    let named = view.role(block.file).is_some();
    block.op == BlockOp::Write && named && (block.file == call.file || block.thread == call.thread)
}

/// When the data of a sync had been written. Earlier journal writes and flushes belong to another sync at the
/// same time (`ext4_sync_file` writes and waits, then commits, then flushes).
fn data_written_at(view: &RecordingView<'_>, call: &Call) -> u64 {
    let blocks = view.blocks_during(call).iter();
    let data = blocks.filter(|block| is_sync_data(view, call, block));
    data.map(|block| block.completed_ns.min(call.end_ns))
        .max()
        .unwrap_or(call.start_ns)
}

/// Whether a request during a sync is the sync's: its file's, its thread's, or the file system's own.
fn belongs_to_sync(view: &RecordingView<'_>, role: Role, call: &Call, block: &Block) -> bool {
    let own = block.file == call.file || block.thread == call.thread;
    let same_role = view.role(block.file).is_none_or(|other| other == role);
    match block.op {
        BlockOp::Flush => true,
        BlockOp::Write => own || (same_role && (block.sync || is_metadata_request(view, block))),
        BlockOp::Read | BlockOp::Discard => false,
    }
}

/// Whether a request says that it is metadata, or the journal's thread wrote it.
fn is_metadata_request(view: &RecordingView<'_>, block: &Block) -> bool {
    let thread = view.recording.threads.get(block.thread as usize);
    let journals =
        |thread: &Thread| thread.class == ThreadClass::Kernel && thread.name.starts_with("jbd2");
    block.meta || thread.is_some_and(journals)
}

// The devices of the recording: the roles on them and their recorded times.

/// Service times kept per kind.
const MOST_TIMES: usize = 20_000;

/// Every physical device, with its partitions combined; files on no known device lie on one more at the end.
pub(crate) fn recorded_devices(view: &RecordingView<'_>) -> Vec<RecordedDevice> {
    let partitions = &view.recording.about.devices;
    let mut order: Vec<u32> = Vec::new();
    for partition in partitions {
        if !order.contains(&partition.shared) {
            order.push(partition.shared);
        }
    }
    let mut devices: Vec<RecordedDevice> =
        order.iter().map(|&s| recorded_device(view, s)).collect();
    devices.extend(device_of_unplaced_roles(view));
    devices
}

fn recorded_device(view: &RecordingView<'_>, shared: u32) -> RecordedDevice {
    let partitions = &view.recording.about.devices;
    let ours = |index: u32| {
        let partition = partitions.get(index as usize);
        partition.is_some_and(|partition| partition.shared == shared)
    };
    let mut all = partitions.iter();
    let first = all.find(|partition| partition.shared == shared);
    let blocks = view.recording.blocks.iter();
    let requests = recorded_requests(view, blocks.filter(|block| ours(block.device)));
    let of = |op: BlockOp| -> Vec<RecordedRequest> {
        let flushed_before = |block: &Block| block.preflush && op != BlockOp::Flush;
        let requests = requests.iter();
        let ours = requests.filter(|(block, _)| block.op == op && !flushed_before(block));
        evenly_sampled(ours.map(|(_, request)| *request).collect())
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
        path: emulated.and_then(measured_emulated_path),
        reads: of(BlockOp::Read),
        writes: of(BlockOp::Write),
        flushes: of(BlockOp::Flush),
        roles,
        write_cache: first.is_some_and(|partition| partition.write_cache),
    }
}

/// The measured path to each emulated disk that was up: a disk like it has the same path, whoever uses it.
pub(crate) fn measured_emulated_paths(view: &RecordingView<'_>) -> Vec<(String, EmulatedPath)> {
    let mut disks: Vec<(String, EmulatedPath)> = Vec::new();
    for partition in &view.recording.about.devices {
        if let (Some(profile), Some(path)) = (&partition.profile, measured_emulated_path(partition))
            && disks.iter().all(|disk| disk.0 != *profile)
        {
            disks.push((profile.clone(), path));
        }
    }
    disks
}

/// The path to an emulated disk, if it was measured.
fn measured_emulated_path(partition: &Device) -> Option<EmulatedPath> {
    let ns = |us: f64| (us * 1e3) as u64;
    let mut added_ns: Vec<(u32, u64)> = Vec::new();
    for &(outstanding, us) in &partition.path_added_us {
        if added_ns.last().is_none_or(|last| last.0 < outstanding) {
            added_ns.push((outstanding, ns(us)));
        }
    }
    Some(EmulatedPath {
        latency_ns: ns(partition.path_us?),
        added_ns,
    })
}

/// A device for the roles on no known device, one after the other; none if there are no such roles.
fn device_of_unplaced_roles(view: &RecordingView<'_>) -> Option<RecordedDevice> {
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
fn recorded_requests<'a>(
    view: &RecordingView<'_>,
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
            time_ns: request_wait_ns(view, block),
            log: view.role(block.file) == Some(Role::Log),
        };
        (block, request)
    };
    blocks.map(request).collect()
}

/// Time of a request less its sender's running time in between, which is part of the sender's own processor
/// time.
fn request_wait_ns(view: &RecordingView<'_>, block: &Block) -> u64 {
    let took_ns = block.completed_ns.saturating_sub(block.issued_ns);
    if took_ns == 0 || view.class(block.thread).is_none() {
        return took_ns;
    }
    let ran_ns = view.on_core_ns(block.thread, block.issued_ns, block.completed_ns);
    took_ns.saturating_sub(ran_ns)
}

/// Evenly sampled members of a list that is too long.
pub(crate) fn evenly_sampled<T: Copy>(all: Vec<T>) -> Vec<T> {
    let step = all.len().div_ceil(MOST_TIMES).max(1);
    all.into_iter().step_by(step).collect()
}
