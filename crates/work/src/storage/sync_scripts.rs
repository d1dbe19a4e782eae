//! Device requests of syncs, from the block requests during them.

use tierwise_recording::{Block, BlockOp, Call, Role, ThreadClass};

use crate::SyncScript;
use crate::view::View;

/// Largest number of writes in a script; more are merged: a sync of a whole file is described by its dirty
/// pages anyway.
const MOST_WRITES: usize = 512;
/// Journal write of a sync of a file that grew, where no block request shows it: the changes, and their
/// commit record.
const JOURNAL_SECTORS: [u32; 2] = [32, 8];

/// The script of one sync of a file of a role.
pub(crate) fn script(view: &View<'_>, role: Role, call: &Call) -> SyncScript {
    script_on(view, role, view.device_of(call.file), call)
}

/// The same, of an object on a device.
pub(crate) fn script_on(view: &View<'_>, role: Role, device: u32, call: &Call) -> SyncScript {
    let mut script = SyncScript::default();
    let (mut flushes, mut forced) = (0, 0);
    script.by_caller = true;
    let data_ns = data_until(view, call);
    for block in view.blocks_during(call) {
        if block.device != device || !belongs(view, role, call, block) {
            continue;
        }
        if !is_data(view, call, block) && block.issued_ns < data_ns {
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
        let list = if is_journals(view, block) {
            script.by_caller &= block.thread == call.thread;
            &mut script.journal_writes
        } else {
            &mut script.writes
        };
        if list.len() < MOST_WRITES {
            list.push((sector, block.sectors));
        }
    }
    let works = !script.writes.is_empty() || !script.journal_writes.is_empty();
    script.by_caller &= !script.journal_writes.is_empty();
    script.flushes = if flushes > 0 { flushes } else { forced };
    if works {
        let by_thread = !script.journal_writes.is_empty() && !script.by_caller;
        script.flushes = script.flushes.max(1 + u32::from(by_thread));
    }
    script
}

/// The script where no block requests are known: the device waits for the written data, and once more for the
/// journal if the file grew.
pub(crate) fn assumed(grew: bool) -> SyncScript {
    if grew {
        SyncScript {
            flushes: 2,
            journal_writes: vec![(0, JOURNAL_SECTORS[0]), (32, JOURNAL_SECTORS[1])],
            ..SyncScript::default()
        }
    } else {
        SyncScript {
            flushes: 1,
            ..SyncScript::default()
        }
    }
}

/// Whether a request writes a sync's data, rather than file system metadata.
fn is_data(view: &View<'_>, call: &Call, block: &Block) -> bool {
    let named = view.role(block.file).is_some();
    block.op == BlockOp::Write && named && (block.file == call.file || block.thread == call.thread)
}

/// When the data of a sync had been written. Earlier journal writes and flushes belong to another sync at the
/// same time (`ext4_sync_file` writes and waits, then commits, then flushes).
fn data_until(view: &View<'_>, call: &Call) -> u64 {
    let blocks = view.blocks_during(call).iter();
    let data = blocks.filter(|block| is_data(view, call, block));
    data.map(|block| block.completed_ns.min(call.end_ns))
        .max()
        .unwrap_or(call.start_ns)
}

/// Whether a request during a sync is the sync's: its file's, its thread's, or the file system's own.
fn belongs(view: &View<'_>, role: Role, call: &Call, block: &Block) -> bool {
    match block.op {
        BlockOp::Flush => true,
        BlockOp::Write => {
            block.file == call.file
                || block.thread == call.thread
                || (view.role(block.file).is_none_or(|other| other == role)
                    && (block.sync || block.meta || journal(view, block)))
        }
        BlockOp::Read | BlockOp::Discard => false,
    }
}

/// Whether a request is one of the file system's journal.
fn is_journals(view: &View<'_>, block: &Block) -> bool {
    view.role(block.file).is_none() && (block.meta || journal(view, block))
}

/// Whether the journal's thread wrote it.
fn journal(view: &View<'_>, block: &Block) -> bool {
    view.class(block.thread) == Some(ThreadClass::Kernel)
        && view.recording.threads[block.thread as usize]
            .name
            .starts_with("jbd2")
}
