//! The file of each block request, and the request of each asynchronous call.
//!
//! Known are: where each file lies (exact, unless a file was moved or removed since), the call that the issuing thread
//! was in (exact for reads; a write or flush is often issued by a kernel thread), and which syncs were under way.

use std::collections::HashMap;

use itertools::Itertools;
use tierwise_recording::{Block, BlockOp, Call, CallKind, NONE, SECTOR_BYTES, UNKNOWN};

use crate::timeline::blocks::DeviceRange;
use crate::timeline::calls::begun_call;
use crate::timeline::files::SeenFiles;
use crate::timeline::syscalls;
use crate::timeline::thread_track::ThreadTrack;

/// Facts about a request when it was issued.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestHint {
    /// File of the call that the issuing thread was in, and what the call asks.
    pub call: Option<(CallKind, u32)>,
    /// Files with a sync under way, the oldest first; [`NONE`] where there are fewer.
    pub syncing: [u32; 4],
    /// A thread of a process issued it that is not recorded: it is of a file only if it lies where that file does.
    pub foreign: bool,
    /// The thread of a journal issued it, for the sync under way.
    pub journal: bool,
}

impl RequestHint {
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
pub(super) fn name_request_files(
    blocks: &mut [Block],
    ranges: &[DeviceRange],
    hints: &[RequestHint],
    files: &SeenFiles,
) {
    let mut unplaced = HashMap::new();
    for (block, hint) in blocks.iter_mut().zip(hints) {
        let moves = matches!(block.op, BlockOp::Read | BlockOp::Write) && !block.meta;
        let of_flush = block.op == BlockOp::Flush;
        let is_here = |device| {
            device == block.device || of_flush && share_a_disk(ranges, device, block.device)
        };
        let mut named = file_of_request(block, hint, files, is_here);
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

fn file_of_request(
    block: &Block,
    hint: &RequestHint,
    files: &SeenFiles,
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
                let may_lie_here = |file: u32| files.may_lie_elsewhere(file);
                let called = called.map(|(_, file)| file);
                let called = called.filter(|&file| may_lie_here(file));
                let synced = || {
                    single_file(&mut syncing).filter(|&file| {
                        block.op == BlockOp::Write && (hint.journal || may_lie_here(file))
                    })
                };
                place.map(|place| place.file).or(called).or_else(synced)
            }
        },
    }
}

/// The file, if it is one and the same.
fn single_file(files: &mut impl Iterator<Item = u32>) -> Option<u32> {
    let first = files.next()?;
    files.all(|file| file == first).then_some(first)
}

/// Gives asynchronous calls the file and offset of the requests that they became.
///
/// The kernel does not tell which request belongs to which call. Both complete in the same order, and a
/// request that was issued and completed within the call and has its length is taken for it.
fn place_asynchronous_calls<'a>(
    calls: impl Iterator<Item = &'a mut Call>,
    blocks: &[Block],
    files: &SeenFiles,
) {
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
            place_call(call, done[at], files);
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
fn place_call(call: &mut Call, block: &Block, files: &SeenFiles) {
    call.file = block.file;
    call.size_bytes = u64::from(block.sectors) * SECTOR_BYTES;
    call.offset_bytes = match files.extents.find(block.device, block.sector) {
        Some(place) if place.file == block.file => place.offset_bytes,
        _ => UNKNOWN,
    };
}

/// An asynchronous call: its thread's track, and its index there.
#[derive(Clone, Copy, Debug)]
struct AsynchronousCall {
    track: usize,
    index: u32,
}

impl AsynchronousCall {
    fn call(self, tracks: &mut [ThreadTrack]) -> &mut Call {
        &mut tracks[self.track].calls[self.index as usize]
    }
}

/// Asynchronous calls of the present burst, whose callers go on before they are done: requests of io_urings, and aio.
#[derive(Debug, Default)]
pub(super) struct AsynchronousCalls {
    /// Requests of io_urings under way, by the kernel's number.
    urings: HashMap<u64, AsynchronousCall>,
    /// Calls that are known only as block requests (aio), with the index of those.
    direct: Vec<(usize, AsynchronousCall)>,
}

impl AsynchronousCalls {
    pub(super) fn submit(
        &mut self,
        tracks: &mut [ThreadTrack],
        at: usize,
        time_ns: u64,
        request: u64,
        operation: u8,
    ) {
        let kind = syscalls::uring_call_kind(operation);
        let submitted = add_asynchronous_call(tracks, at, time_ns, kind);
        self.urings.insert(request, submitted);
    }

    pub(super) fn done(
        &mut self,
        tracks: &mut [ThreadTrack],
        time_ns: u64,
        request: u64,
        result: i64,
    ) {
        if let Some(submitted) = self.urings.remove(&request) {
            let call = submitted.call(tracks);
            call.end_ns = time_ns;
            call.size_bytes = result.max(0) as u64;
            call.failed = result < 0;
        }
    }

    /// A thread made a block request in a call that does not wait for it.
    pub(super) fn issued(
        &mut self,
        tracks: &mut [ThreadTrack],
        at: usize,
        index: usize,
        block: &Block,
    ) {
        let kind = match block.op {
            BlockOp::Read => CallKind::Read,
            BlockOp::Write => CallKind::Write,
            BlockOp::Flush | BlockOp::Discard => CallKind::Other,
        };
        let submitted = add_asynchronous_call(tracks, at, block.issued_ns, kind);
        self.direct.push((index, submitted));
    }

    /// Ends the burst: gives calls the file and offset of their requests, which know both by now.
    pub(super) fn place(
        &mut self,
        tracks: &mut [ThreadTrack],
        blocks: &[Block],
        files: &SeenFiles,
    ) {
        self.urings.clear();
        for (index, submitted) in self.direct.drain(..) {
            let block = &blocks[index];
            let call = submitted.call(tracks);
            place_call(call, block, files);
            if block.completed_ns > 0 {
                call.end_ns = block.completed_ns;
            }
        }
        let calls = tracks.iter_mut().flat_map(|track| &mut track.calls);
        place_asynchronous_calls(calls.filter(|call| call.asynchronous), blocks, files);
    }
}

fn add_asynchronous_call(
    tracks: &mut [ThreadTrack],
    at: usize,
    time_ns: u64,
    kind: CallKind,
) -> AsynchronousCall {
    let track = &mut tracks[at];
    let index = track.calls.len() as u32;
    track.calls.push(Call {
        end_ns: u64::MAX,
        asynchronous: true,
        ..begun_call(time_ns, track.thread, kind)
    });
    AsynchronousCall { track: at, index }
}
