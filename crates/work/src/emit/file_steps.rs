//! Reads and writes of files as steps: page cache hits, read-ahead, waits, writes past the cache.

use tierwise_recording::{Block, BlockOp, Call, CallKind, NONE, State};

use crate::Step;
use crate::constants::{EARLY_NS, WOKEN_NS};
use crate::index::view::View;

/// Reads of neighbouring sectors are merged up to this length.
const LOOK_SECTORS: u32 = 256;

/// Start and end of a thread's wait.
pub(crate) type Wait = (u64, u64);

/// Steps of a read with this wait.
pub(crate) fn read(view: &View<'_>, call: &Call, waits: &[Wait]) -> Vec<Step> {
    if call.asynchronous {
        return transfer(view, call, false).into_iter().collect();
    }
    let own = view.own_blocks(call, BlockOp::Read);
    let mut steps = own_reads(view, &own, waits);
    match waits.last() {
        None => steps.extend(look(view, call)),
        Some(&(_, waited_ns)) if own.is_empty() => {
            steps.extend(under_way(view, call, waited_ns));
        }
        Some(_) => {}
    }
    steps
}

/// Device reads of any other call: directories and inodes to open a file, the map of free space to extend
/// one.
pub(crate) fn reads_within(view: &View<'_>, call: &Call, waits: &[Wait]) -> Vec<Step> {
    let talks = matches!(
        call.kind,
        CallKind::Receive | CallKind::Send | CallKind::Poll | CallKind::Lock | CallKind::Sleep
    );
    if talks || call.asynchronous {
        return Vec::new();
    }
    own_reads(view, &view.own_blocks(call, BlockOp::Read), waits)
}

/// Device reads of a page fault, if a thread waited outside of any call.
pub(crate) fn fault(view: &View<'_>, state: &State) -> Vec<Step> {
    let own = view.fault_reads(state);
    own_reads(view, &own, &[(state.start_ns, state.end_ns)])
}

/// Steps of a write: into the page cache, or past it if the caller's own requests went to the device.
pub(crate) fn write(view: &View<'_>, call: &Call, waits: &[Wait]) -> Vec<Step> {
    if call.asynchronous {
        return transfer(view, call, true).into_iter().collect();
    }
    let mut steps = own_reads(view, &view.own_blocks(call, BlockOp::Read), waits);
    let Some((role, sector, sectors)) = view.address_space.of_call(view, call) else {
        return steps;
    };
    steps.push(if view.is_direct(call) {
        Step::WriteThrough {
            role,
            sector,
            sectors,
        }
    } else {
        Step::Write {
            role,
            sector,
            sectors,
        }
    });
    steps
}

/// Requests that a thread itself sent, in order; a request is waited for if a wait ended with it.
fn own_reads(view: &View<'_>, own: &[&Block], waits: &[Wait]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut left = own;
    for &(_, waited_ns) in waits {
        let sent = left.partition_point(|block| block.issued_ns <= waited_ns);
        let awaited = left[..sent].iter().rposition(|block| {
            block.completed_ns <= waited_ns + EARLY_NS.get()
                && block.completed_ns + WOKEN_NS.get() >= waited_ns
        });
        if let Some(awaited) = awaited {
            steps.extend(waited_for(view, &left[..sent], awaited));
            left = &left[sent..];
        }
    }
    if !waits.is_empty() && left.len() == own.len() && !own.is_empty() {
        return waited_for(view, own, 0);
    }
    steps.extend(left.iter().flat_map(|block| submit(view, block)));
    steps
}

/// Requests sent together, one of which is waited for.
fn waited_for(view: &View<'_>, sent: &[&Block], awaited: usize) -> Vec<Step> {
    let submits = || sent.iter().flat_map(|block| submit(view, block));
    let Some((role, sector)) = view.address_space.of_block(view, sent[awaited]) else {
        return submits().collect();
    };
    let sectors = sent[awaited].sectors;
    if sent.len() == 1 {
        let read = Step::Read {
            role,
            sector,
            sectors,
        };
        return stream(view, sent[0]).into_iter().chain([read]).collect();
    }
    // In the order in which they were sent: the first request set the position of the disk's head.
    let look = Step::CachedRead {
        role,
        sector,
        sectors,
    };
    submits().chain([look]).collect()
}

/// How far the stream of a request continues, if it does.
fn stream(view: &View<'_>, block: &Block) -> Option<Step> {
    let sectors = view.streams.rest(block);
    (sectors > 0).then_some(Step::Stream { sectors })
}

/// Adds a step; merges it with the previous one if both read neighbouring sectors.
pub(crate) fn join_looks(before: Option<&mut Step>, step: Step) -> Option<Step> {
    let (
        Some(Step::CachedRead {
            role,
            sector,
            sectors,
        }),
        Step::CachedRead {
            role: next_role,
            sector: next,
            sectors: more,
        },
    ) = (before, step)
    else {
        return Some(step);
    };
    let follows = *role == next_role && *sector + u64::from(*sectors) == next;
    if follows && *sectors + more <= LOOK_SECTORS {
        *sectors += more;
        return None;
    }
    Some(step)
}

/// An asynchronous request, as its call shows.
fn transfer(view: &View<'_>, call: &Call, write: bool) -> Option<Step> {
    let (role, sector, sectors) = view.address_space.of_call(view, call)?;
    Some(Step::Submit {
        role,
        sector,
        sectors,
        write,
    })
}

fn look(view: &View<'_>, call: &Call) -> Option<Step> {
    let (role, sector, sectors) = view.address_space.of_call(view, call)?;
    (call.size_bytes > 0).then_some(Step::CachedRead {
        role,
        sector,
        sectors,
    })
}

fn submit(view: &View<'_>, block: &Block) -> Vec<Step> {
    let Some((role, sector)) = view.address_space.of_block(view, block) else {
        return Vec::new();
    };
    let submit = Step::Submit {
        role,
        sector,
        sectors: block.sectors,
        write: false,
    };
    stream(view, block).into_iter().chain([submit]).collect()
}

/// A wait for pages of an outstanding request that was sent earlier or by another thread.
fn under_way(view: &View<'_>, call: &Call, waited_ns: u64) -> Option<Step> {
    let device = view.device_of(call.file);
    let from_ns = call.start_ns.saturating_sub(1_000_000_000);
    let earlier = view.blocks(from_ns, waited_ns).iter().rev().take(512);
    let role = view.role(call.file)?;
    let mut fitting = earlier.filter(|block| {
        block.op == BlockOp::Read
            && block.device == device
            && (block.file == call.file || block.file == NONE)
            && block.completed_ns <= waited_ns + EARLY_NS.get()
            && block.completed_ns + WOKEN_NS.get() >= waited_ns
    });
    if let Some(block) = fitting.next() {
        let sector = view.address_space.sector_of(role, block)?;
        let sectors = block.sectors;
        let step = if block.issued_ns >= call.start_ns {
            Step::Read {
                role,
                sector,
                sectors,
            }
        } else {
            Step::CachedRead {
                role,
                sector,
                sectors,
            }
        };
        return Some(step);
    }
    let (role, sector, sectors) = view.address_space.of_call(view, call)?;
    Some(if view.sees(device) {
        // The thread waited for memory or a lock, not for the device.
        Step::CachedRead {
            role,
            sector,
            sectors,
        }
    } else {
        Step::Read {
            role,
            sector,
            sectors,
        }
    })
}
