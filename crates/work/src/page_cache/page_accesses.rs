//! Accesses to pages of files, in order.

use tierwise_recording::{BlockOp, Call, CallKind, ThreadClass, UNKNOWN};

use crate::index::rows::Rows;

/// Largest size of a call (`MAX_RW_COUNT` in Linux's include/linux/fs.h), and of a request.
const MOST_BYTES: u64 = 0x7fff_f000;
const MOST_SECTORS: u32 = (MOST_BYTES / 512) as u32;

/// An access to pages: index of its row among the calls or among the block requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    Block(u32),
    Call(u32),
}

/// All uses of pages, by time: requests at submission, calls at completion, because a call's device requests
/// precede its completion.
pub(crate) fn accesses(rows: &Rows<'_>) -> Vec<(u64, Access)> {
    let recording = rows.recording;
    let requests = recording.blocks.iter().zip(0..);
    let requests = requests
        .filter(|(block, _)| block.op == BlockOp::Read && block.sectors <= MOST_SECTORS)
        .map(|(block, number)| (block.issued_ns, Access::Block(number)));
    let uses = |call: &Call| match call.kind {
        CallKind::Read | CallKind::Write => {
            call.offset_bytes != UNKNOWN && (1..=MOST_BYTES).contains(&call.size_bytes)
        }
        CallKind::Resize => call.size_bytes == 0,
        _ => false,
    };
    let calls = recording.calls.iter().zip(0..);
    let calls = calls
        .filter(|(call, _)| uses(call) && !call.failed)
        .map(|(call, number)| (when(call), Access::Call(number)));
    let mut accesses: Vec<(u64, Access)> = requests.chain(calls).collect();
    accesses.sort_unstable();
    accesses
}

/// A caller that continues before its request is done uses its pages before the device receives the request.
fn when(call: &Call) -> u64 {
    if call.asynchronous {
        call.start_ns
    } else {
        call.end_ns
    }
}

/// Starts of bursts before which the page cache may have changed unseen: work continued unrecorded, or the
/// engine was restarted, as is done to begin with empty caches.
pub(crate) fn discontinuities(rows: &Rows<'_>) -> Vec<u64> {
    let whole = rows.is_whole();
    let bursts = rows.recording.about.bursts.windows(2);
    bursts
        .filter(|pair| {
            let gap = pair[1].start_ns > pair[0].end_ns;
            gap && !(whole && lives_on(rows, pair[0].end_ns, pair[1].start_ns))
        })
        .map(|pair| pair[1].start_ns)
        .collect()
}

/// Whether a thread of the engine was there before and after.
fn lives_on(rows: &Rows<'_>, before_ns: u64, after_ns: u64) -> bool {
    let engine = [
        ThreadClass::Session,
        ThreadClass::LogWriter,
        ThreadClass::Background,
    ];
    let mut threads = engine.into_iter().flat_map(|class| rows.threads(class));
    threads.any(|thread| {
        let states = rows.states(thread);
        let (first, last) = (states.first(), states.last());
        first.is_some_and(|state| state.start_ns < before_ns)
            && last.is_some_and(|state| state.end_ns > after_ns)
    })
}
