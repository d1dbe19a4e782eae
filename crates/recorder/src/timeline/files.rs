//! Files by path, where they lie on devices, and the numbers that processes have for them.

use std::collections::{BTreeSet, HashMap};

use itertools::Itertools;
use rangemap::RangeMap;
use tierwise_recording::{
    Block, BlockOp, Call, CallKind, File, NONE, PAGE_BYTES, Role, SECTOR_BYTES, UNKNOWN,
};

use crate::timeline::blocks::DeviceRange;
use crate::timeline::calls::call_at;
use crate::timeline::syscalls;
use crate::timeline::track::Track;

/// Bytes of a file that lie together on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Index of the device among those of the recording.
    pub device: u32,
    /// First sector, counted from the start of the partition.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// Where in the file it begins.
    pub offset_bytes: u64,
}

/// A sector's file and the place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub file: u32,
    pub offset_bytes: u64,
}

/// All extents, without overlap; the latest one added wins.
#[derive(Debug, Default)]
pub(crate) struct Extents {
    /// By device and sector: the file, and the distance from a sector's place on the device to its place in the file,
    /// in bytes, modulo 2^64.
    devices: HashMap<u32, RangeMap<u64, (u32, u64)>>,
}

impl Extents {
    pub(crate) fn insert(&mut self, file: u32, extent: Extent) {
        let end = extent.sector.saturating_add(extent.sectors);
        if end > extent.sector {
            let place_bytes = extent.sector.wrapping_mul(SECTOR_BYTES);
            let distance_bytes = extent.offset_bytes.wrapping_sub(place_bytes);
            let device = self.devices.entry(extent.device).or_default();
            device.insert(extent.sector..end, (file, distance_bytes));
        }
    }

    /// The file that a sector belongs to.
    pub(crate) fn find(&self, device: u32, sector: u64) -> Option<Place> {
        let &(file, distance_bytes) = self.devices.get(&device)?.get(&sector)?;
        Some(Place {
            file,
            offset_bytes: distance_bytes.wrapping_add(sector.wrapping_mul(SECTOR_BYTES)),
        })
    }
}

/// Facts about a file from outside of the trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileFacts {
    pub role: Option<Role>,
    /// Index of its device among those of the recording.
    pub device: Option<u32>,
    pub size_bytes: u64,
    /// Whether it is there and holds nothing.
    pub empty: bool,
    /// Where it lies; what was known before about the same sectors is replaced.
    pub extents: Vec<Extent>,
}

/// Every file that was seen, each once.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub rows: Vec<File>,
    pub extents: Extents,
    by_path: HashMap<String, u32>,
    /// New, or of another size than when they were last described.
    changed: BTreeSet<u32>,
    /// With a role and a device, but nowhere on it that is known: removed by now, or not written back yet.
    unplaced: BTreeSet<u32>,
    /// All bytes lie where it is known: what lies elsewhere is not of them, whoever gave it to the device. A scheduler's
    /// queue is emptied by any thread.
    placed: BTreeSet<u32>,
    /// Written by a recorded thread.
    written: BTreeSet<u32>,
}

impl Files {
    /// The index of a path, new or known.
    pub(super) fn intern(&mut self, path: &str) -> u32 {
        if let Some(&file) = self.by_path.get(path) {
            return file;
        }
        let file = self.rows.len() as u32;
        self.rows.push(File {
            path: path.to_owned(),
            role: None,
            device: NONE,
            size_bytes: 0,
        });
        self.by_path.insert(path.to_owned(), file);
        self.changed.insert(file);
        file
    }

    /// Whether its bytes are exchanged with a peer rather than a file.
    pub(super) fn is_stream(&self, file: u32) -> bool {
        match self.rows.get(file as usize) {
            Some(row) => !row.path.starts_with('/'),
            None => true,
        }
    }

    /// A recorded thread wrote to a file or resized it.
    pub(super) fn touch(&mut self, file: u32, writes: bool) {
        if file != NONE {
            self.changed.insert(file);
            if writes {
                self.written.insert(file);
            }
        }
    }

    /// Files whose facts are not known or no longer true.
    pub(super) fn to_resolve(&self) -> Vec<(u32, String)> {
        let changed = self.changed.iter().filter(|&&file| !self.is_stream(file));
        changed
            .map(|&file| (file, self.rows[file as usize].path.clone()))
            .collect()
    }

    /// The file for a place on a device where no known file lies: the newest file whose place is not known,
    /// if all such files are of one role. Temporary files are removed before their place can be asked for.
    pub(super) fn unplaced_on(&self, device: u32) -> Option<u32> {
        let on_it = |file: &&u32| self.rows[**file as usize].device == device;
        let newest = *self.unplaced.iter().rev().find(on_it)?;
        let role = |file: u32| self.rows[file as usize].role;
        let mut others = self.unplaced.iter().filter(on_it);
        let one_role = others.all(|&file| role(file) == role(newest));
        one_role.then_some(newest)
    }

    /// Whether so many sectors at once can be a file's: it is as large, or was removed, and its size with it.
    fn can_hold(&self, file: u32, sectors: u32) -> bool {
        let size_bytes = self.rows[file as usize].size_bytes;
        size_bytes == 0
            || u64::from(sectors) * SECTOR_BYTES <= size_bytes.next_multiple_of(PAGE_BYTES)
    }

    /// Devices that matter to the database.
    pub(super) fn devices_with_roles(&self) -> BTreeSet<u32> {
        let placed = self.rows.iter().filter(|row| row.role.is_some());
        placed.map(|row| row.device).collect()
    }

    pub(super) fn describe(&mut self, file: u32, facts: FileFacts) {
        let Some(row) = self.rows.get_mut(file as usize) else {
            return;
        };
        row.role = facts.role;
        row.device = facts.device.unwrap_or(NONE);
        row.size_bytes = facts.size_bytes;
        self.changed.remove(&file);
        // A file that is empty or was removed, and that nobody wrote, has no requests: those without a place are of other
        // programs. A temporary one may have been written between bursts.
        let may_be_unseen = !facts.empty && facts.role == Some(Role::Temp);
        let may_lie_anywhere =
            facts.size_bytes > 0 || may_be_unseen || self.written.contains(&file);
        if facts.extents.is_empty() && facts.role.is_some() && may_lie_anywhere {
            self.unplaced.insert(file);
        } else {
            self.unplaced.remove(&file);
        }
        let sectors = facts.extents.iter().map(|extent| extent.sectors);
        let placed_bytes = sectors.sum::<u64>() * SECTOR_BYTES;
        if placed_bytes > 0 && placed_bytes >= facts.size_bytes {
            self.placed.insert(file);
        } else {
            self.placed.remove(&file);
        }
        for extent in facts.extents {
            self.extents.insert(file, extent);
        }
    }
}

/// The open file behind a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Descriptor {
    /// Index of the file.
    pub file: u32,
    /// Where the next read or write without an offset begins, or [`UNKNOWN`].
    pub position: u64,
}

/// The numbers of every process.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    processes: HashMap<i32, HashMap<i32, Descriptor>>,
}

impl Descriptors {
    pub(super) fn get(&mut self, pid: i32, fd: i32) -> Option<&mut Descriptor> {
        self.processes.get_mut(&pid)?.get_mut(&fd)
    }

    pub(super) fn set(&mut self, pid: i32, fd: i32, file: u32, position: u64) {
        let descriptor = Descriptor { file, position };
        let open = self.processes.entry(pid).or_default();
        open.insert(fd, descriptor);
    }

    /// `copy` stands for the same as `fd`; for nothing known if that is not known.
    pub(super) fn duplicate(&mut self, pid: i32, fd: i32, copy: i32) {
        match self.get(pid, fd).copied() {
            Some(of) => self.set(pid, copy, of.file, UNKNOWN),
            None => self.close(pid, copy),
        }
    }

    pub(super) fn close(&mut self, pid: i32, fd: i32) {
        if let Some(open) = self.processes.get_mut(&pid) {
            open.remove(&fd);
        }
    }

    pub(super) fn close_range(&mut self, pid: i32, first: u64, last: u64) {
        if let Some(open) = self.processes.get_mut(&pid) {
            open.retain(|&fd, _| !(first..=last).contains(&(fd as u64)));
        }
    }

    /// A child process begins with its parent's numbers.
    pub(super) fn fork(&mut self, parent: i32, child: i32) {
        if let Some(open) = self.processes.get(&parent).cloned() {
            self.processes.insert(child, open);
        }
    }

    pub(super) fn forget(&mut self, pid: i32) {
        self.processes.remove(&pid);
    }
}

// The file of each block request, and the request of each asynchronous call.
//
// Known are: where each file lies (exact, unless a file was moved or removed since), the call that the issuing thread
// was in (exact for reads; a write or flush is often issued by a kernel thread), and which syncs were under way.

/// Facts about a request when it was issued.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hint {
    /// File of the call that the issuing thread was in, and what the call asks.
    pub call: Option<(CallKind, u32)>,
    /// Files with a sync under way, the oldest first; [`NONE`] where there are fewer.
    pub syncing: [u32; 4],
    /// A thread of a process issued it that is not recorded: it is of a file only if it lies where that file does.
    pub foreign: bool,
    /// The thread of a journal issued it, for the sync under way.
    pub journal: bool,
}

impl Hint {
    /// Whether a recorded thread made the request in a call that moves a file's bytes or waits for such calls.
    pub(super) fn is_of_file_call(&self) -> bool {
        use CallKind::{Await, Read, Resize, Sync, Write};
        self.call
            .is_some_and(|(kind, _)| matches!(kind, Read | Write | Sync | Resize | Await))
    }
}

/// Names the file of every request for which it is known.
///
/// A flush is of a whole disk. It goes to the device of the file that it is for.
pub(super) fn name_files(
    blocks: &mut [Block],
    ranges: &[DeviceRange],
    hints: &[Hint],
    files: &Files,
) {
    let mut unplaced = HashMap::new();
    for (block, hint) in blocks.iter_mut().zip(hints) {
        let moves = matches!(block.op, BlockOp::Read | BlockOp::Write) && !block.meta;
        let of_flush = block.op == BlockOp::Flush;
        let is_here = |device| {
            device == block.device || of_flush && share_a_disk(ranges, device, block.device)
        };
        let mut named = file_of(block, hint, files, is_here);
        if named.is_none() && moves && !hint.foreign {
            let device = block.device;
            let newest = unplaced.entry(device);
            let newest = *newest.or_insert_with(|| files.unplaced_on(device));
            named = newest.filter(|&file| files.can_hold(file, block.sectors));
        }
        block.file = named.unwrap_or(NONE);
        if let Some(file) = named.filter(|_| of_flush) {
            block.device = files.rows[file as usize].device;
        }
    }
}

fn share_a_disk(ranges: &[DeviceRange], one: u32, other: u32) -> bool {
    let disks = |device| ranges.iter().filter(move |range| range.device == device);
    disks(one).any(|range| disks(other).any(|same| same.number == range.number))
}

fn file_of(
    block: &Block,
    hint: &Hint,
    files: &Files,
    is_here: impl Fn(u32) -> bool,
) -> Option<u32> {
    let here = |file: u32| {
        let row = files.rows.get(file as usize);
        row.is_some_and(|row| is_here(row.device))
    };
    let called = hint.call.filter(|&(_, file)| here(file));
    let syncing = hint.syncing.into_iter();
    let mut syncing = syncing.filter(|&file| !hint.foreign && here(file));
    match block.op {
        BlockOp::Discard => None,
        BlockOp::Flush => match called {
            Some((CallKind::Sync | CallKind::Write, file)) => Some(file),
            _ => syncing.next(),
        },
        _ if block.meta => None,
        BlockOp::Read | BlockOp::Write => match (block.op, called) {
            (BlockOp::Read, Some((CallKind::Read, file))) => Some(file),
            _ => {
                let place = files.extents.find(block.device, block.sector);
                let may_lie_here = |file: &u32| !files.placed.contains(file);
                let called = called.map(|(_, file)| file).filter(may_lie_here);
                let synced = || {
                    only(&mut syncing).filter(|file| {
                        block.op == BlockOp::Write && (hint.journal || may_lie_here(file))
                    })
                };
                place.map(|place| place.file).or(called).or_else(synced)
            }
        },
    }
}

/// The file, if it is one and the same.
fn only(files: &mut impl Iterator<Item = u32>) -> Option<u32> {
    let first = files.next()?;
    files.all(|file| file == first).then_some(first)
}

/// Gives asynchronous calls the file and offset of the requests that they became.
///
/// The kernel does not tell which request belongs to which call. Both complete in the same order, and a
/// request that was issued and completed within the call and has its length is taken for it.
fn place_submitted<'a>(calls: impl Iterator<Item = &'a mut Call>, blocks: &[Block], files: &Files) {
    let moves = |kind: CallKind| matches!(kind, CallKind::Read | CallKind::Write);
    let calls = calls.filter(|call| moves(call.kind) && call.file == NONE);
    let calls = calls.sorted_by_key(|call| call.end_ns).collect_vec();
    if calls.is_empty() {
        return;
    }
    let done = blocks.iter();
    let done = done.filter(|block| block.file != NONE && block.completed_ns > 0);
    let done = done.sorted_by_key(|block| block.completed_ns).collect_vec();
    let mut free = vec![true; done.len()];
    for call in calls {
        let begun = done.partition_point(|block| block.completed_ns < call.start_ns);
        let ended = done.partition_point(|block| block.completed_ns <= call.end_ns);
        let fits = |at: &usize| free[*at] && is_request_of(done[*at], call);
        if let Some(at) = (begun..ended).find(fits) {
            free[at] = false;
            place(call, done[at], files);
        }
    }
}

fn is_request_of(block: &Block, call: &Call) -> bool {
    let op = match call.kind {
        CallKind::Read => BlockOp::Read,
        _ => BlockOp::Write,
    };
    block.op == op
        && block.issued_ns >= call.start_ns
        && u64::from(block.sectors) * SECTOR_BYTES == call.size_bytes
}

/// A call asked what a request did.
fn place(call: &mut Call, block: &Block, files: &Files) {
    call.file = block.file;
    call.size_bytes = u64::from(block.sectors) * SECTOR_BYTES;
    call.offset_bytes = match files.extents.find(block.device, block.sector) {
        Some(place) if place.file == block.file => place.offset_bytes,
        _ => UNKNOWN,
    };
}

/// An asynchronous call: its thread's track, and its index there.
#[derive(Clone, Copy, Debug)]
struct Submitted {
    track: usize,
    index: u32,
}

impl Submitted {
    fn call(self, tracks: &mut [Track]) -> &mut Call {
        &mut tracks[self.track].calls[self.index as usize]
    }
}

/// Asynchronous calls of the present burst, whose callers go on before they are done: requests of io_urings, and aio.
#[derive(Debug, Default)]
pub(super) struct Asynchronous {
    /// Requests of io_urings under way, by the kernel's number.
    urings: HashMap<u64, Submitted>,
    /// Calls that are known only as block requests (aio), with the index of those.
    direct: Vec<(usize, Submitted)>,
}

impl Asynchronous {
    pub(super) fn submit(
        &mut self,
        tracks: &mut [Track],
        at: usize,
        time_ns: u64,
        request: u64,
        operation: u8,
    ) {
        let kind = syscalls::uring_kind(operation);
        let submitted = add(tracks, at, time_ns, kind);
        self.urings.insert(request, submitted);
    }

    pub(super) fn done(&mut self, tracks: &mut [Track], time_ns: u64, request: u64, result: i64) {
        if let Some(submitted) = self.urings.remove(&request) {
            let call = submitted.call(tracks);
            call.end_ns = time_ns;
            call.size_bytes = result.max(0) as u64;
            call.failed = result < 0;
        }
    }

    /// A thread made a block request in a call that does not wait for it.
    pub(super) fn issued(&mut self, tracks: &mut [Track], at: usize, index: usize, block: &Block) {
        let kind = match block.op {
            BlockOp::Read => CallKind::Read,
            BlockOp::Write => CallKind::Write,
            BlockOp::Flush | BlockOp::Discard => CallKind::Other,
        };
        let submitted = add(tracks, at, block.issued_ns, kind);
        self.direct.push((index, submitted));
    }

    /// Ends the burst: gives calls the file and offset of their requests, which know both by now.
    pub(super) fn place(&mut self, tracks: &mut [Track], blocks: &[Block], files: &Files) {
        self.urings.clear();
        for (index, submitted) in self.direct.drain(..) {
            let block = &blocks[index];
            let call = submitted.call(tracks);
            place(call, block, files);
            if block.completed_ns > 0 {
                call.end_ns = block.completed_ns;
            }
        }
        let calls = tracks.iter_mut().flat_map(|track| &mut track.calls);
        place_submitted(calls.filter(|call| call.asynchronous), blocks, files);
    }
}

fn add(tracks: &mut [Track], at: usize, time_ns: u64, kind: CallKind) -> Submitted {
    let track = &mut tracks[at];
    let index = track.calls.len() as u32;
    track.calls.push(Call {
        end_ns: u64::MAX,
        asynchronous: true,
        ..call_at(time_ns, track.thread, kind)
    });
    Submitted { track: at, index }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(sector: u64, sectors: u64, offset_bytes: u64) -> Extent {
        Extent {
            device: 3,
            sector,
            sectors,
            offset_bytes,
        }
    }

    #[test]
    fn the_latest_wins_and_what_it_covers_is_cut() {
        let mut extents = Extents::default();
        extents.insert(1, extent(100, 100, 0));
        extents.insert(2, extent(120, 10, 8192));
        let found = |sector| {
            let place = extents.find(3, sector)?;
            Some((place.file, place.offset_bytes))
        };
        assert_eq!(found(99), None);
        assert_eq!(found(100), Some((1, 0)));
        assert_eq!(found(119), Some((1, 19 * 512)));
        assert_eq!(found(121), Some((2, 8192 + 512)));
        assert_eq!(found(130), Some((1, 30 * 512)));
        assert_eq!(found(200), None);
        assert_eq!(extents.find(2, 121), None);
    }
}
