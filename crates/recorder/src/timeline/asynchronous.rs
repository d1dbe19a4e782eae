//! Calls whose callers go on before they are done: requests of io_urings, and aio.

use std::collections::HashMap;

use tierwise_recording::{Block, BlockOp, Call, CallKind, NONE, UNKNOWN};

use super::files::Files;
use super::join;
use super::syscalls;
use super::track::Track;

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

/// Asynchronous calls of the present burst.
#[derive(Debug, Default)]
pub(super) struct Asynchronous {
    /// Requests of io_urings under way, by the kernel's number.
    urings: HashMap<u64, Submitted>,
    /// Calls that are known only as block requests (aio), with the index of those.
    direct: Vec<(usize, Submitted)>,
}

impl Asynchronous {
    /// A request was handed to an io_uring.
    pub(super) fn submit(
        &mut self,
        tracks: &mut [Track],
        at: usize,
        time_ns: u64,
        (request, operation): (u64, u8),
    ) {
        let kind = syscalls::uring_kind(operation);
        let submitted = add(tracks, at, time_ns, kind);
        self.urings.insert(request, submitted);
    }

    /// A request of an io_uring is done.
    pub(super) fn done(&mut self, tracks: &mut [Track], time_ns: u64, request: u64, result: i64) {
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
        tracks: &mut [Track],
        at: usize,
        (index, block): (usize, &Block),
    ) {
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
            join::place(call, block, files);
            if block.completed_ns > 0 {
                call.end_ns = block.completed_ns;
            }
        }
        let calls = tracks.iter_mut().flat_map(|track| &mut track.calls);
        join::place_submitted(calls.filter(|call| call.asynchronous), blocks, files);
    }
}

fn add(tracks: &mut [Track], at: usize, time_ns: u64, kind: CallKind) -> Submitted {
    let track = &mut tracks[at];
    let index = track.calls.len() as u32;
    track.calls.push(Call {
        thread: track.thread,
        start_ns: time_ns,
        end_ns: u64::MAX,
        kind,
        file: NONE,
        offset_bytes: UNKNOWN,
        size_bytes: 0,
        asynchronous: true,
        failed: false,
        transaction_status: None,
    });
    Submitted { track: at, index }
}
