//! Reads and writes of files as steps: found in the page cache, read ahead, waited for, written past the cache.

use tierwise_recording::{Block, BlockOp, Call, CallKind, NONE};

use crate::Step;
use crate::view::View;

/// A reader goes on within this time after the request that it waited for.
const WOKEN_NS: u64 = 100_000;
/// Looks at neighbouring sectors become one, up to this length.
const LOOK_SECTORS: u32 = 256;

/// Steps of a read; `waited` is the end of its last wait, if it waited.
pub(crate) fn read(view: &View<'_>, call: &Call, waited: Option<u64>) -> Vec<Step> {
    if call.asynchronous {
        return transfer(view, call, false).into_iter().collect();
    }
    let own = own_blocks(view, call, BlockOp::Read);
    let Some(waited_ns) = waited else {
        let mut steps: Vec<Step> = own.iter().filter_map(|b| submit(view, b)).collect();
        steps.extend(look(view, call));
        return steps;
    };
    let needed = own
        .iter()
        .rposition(|block| block.completed_ns <= waited_ns + WOKEN_NS / 5);
    let Some(needed) = needed.or_else(|| (!own.is_empty()).then_some(0)) else {
        return vec![under_way(view, call, waited_ns)]
            .into_iter()
            .flatten()
            .collect();
    };
    let others = own.iter().enumerate().filter(|&(index, _)| index != needed);
    let mut steps: Vec<Step> = others.filter_map(|(_, b)| submit(view, b)).collect();
    steps.extend(
        view.space
            .of_block(view, own[needed])
            .map(|(role, sector)| Step::Read {
                role,
                sector,
                sectors: own[needed].sectors,
            }),
    );
    steps
}

/// Steps of a read of a file whose name is not known: what it made the device do.
pub(crate) fn unnamed_read(view: &View<'_>, call: &Call, waited: Option<u64>) -> Vec<Step> {
    let own = own_blocks(view, call, BlockOp::Read);
    if own.is_empty() {
        return Vec::new();
    }
    read(view, call, waited)
}

/// Steps of a write: into the page cache, or past it if the caller's own requests went to the device.
pub(crate) fn write(view: &View<'_>, call: &Call) -> Vec<Step> {
    if call.asynchronous {
        return transfer(view, call, true).into_iter().collect();
    }
    let mut steps: Vec<Step> = own_blocks(view, call, BlockOp::Read)
        .iter()
        .filter_map(|block| {
            let (role, sector) = view.space.of_block(view, block)?;
            let sectors = block.sectors;
            Some(Step::Read {
                role,
                sector,
                sectors,
            })
        })
        .collect();
    let Some((role, sector, sectors)) = view.space.of_call(view, call) else {
        return steps;
    };
    let direct = own_blocks(view, call, BlockOp::Write)
        .iter()
        .any(|block| block.file == call.file);
    steps.push(if direct {
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

/// Adds a step, joined to the one before if both look at neighbouring sectors.
pub(crate) fn join_looks(before: Option<&mut Step>, step: Step) -> Option<Step> {
    let (
        Some(Step::Look {
            role,
            sector,
            sectors,
        }),
        Step::Look {
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

/// An asynchronous request, as its call tells.
fn transfer(view: &View<'_>, call: &Call, write: bool) -> Option<Step> {
    let (role, sector, sectors) = view.space.of_call(view, call)?;
    Some(Step::Submit {
        role,
        sector,
        sectors,
        write,
    })
}

fn look(view: &View<'_>, call: &Call) -> Option<Step> {
    let (role, sector, sectors) = view.space.of_call(view, call)?;
    (call.size_bytes > 0).then_some(Step::Look {
        role,
        sector,
        sectors,
    })
}

fn submit(view: &View<'_>, block: &&Block) -> Option<Step> {
    let (role, sector) = view.space.of_block(view, block)?;
    Some(Step::Submit {
        role,
        sector,
        sectors: block.sectors,
        write: false,
    })
}

/// A wait for pages that another request, sent earlier or by somebody else, was bringing.
fn under_way(view: &View<'_>, call: &Call, waited_ns: u64) -> Option<Step> {
    let device = view.device_of(call.file);
    let from_ns = call.start_ns.saturating_sub(1_000_000_000);
    let earlier = view.blocks(from_ns, waited_ns).iter().rev().take(512);
    let role = view.role(call.file)?;
    let mut fitting = earlier.filter(|block| {
        block.op == BlockOp::Read
            && block.device == device
            && (block.file == call.file || block.file == NONE)
            && block.completed_ns <= waited_ns + WOKEN_NS / 5
            && block.completed_ns + WOKEN_NS >= waited_ns
    });
    if let Some(block) = fitting.next() {
        let sector = view.space.sector_of(role, block)?;
        let sectors = block.sectors;
        let step = if block.issued_ns >= call.start_ns {
            Step::Read {
                role,
                sector,
                sectors,
            }
        } else {
            Step::Look {
                role,
                sector,
                sectors,
            }
        };
        return Some(step);
    }
    let (role, sector, sectors) = view.space.of_call(view, call)?;
    Some(Step::Read {
        role,
        sector,
        sectors,
    })
}

/// Block requests that the caller itself submitted within a call.
fn own_blocks<'a>(view: &View<'a>, call: &Call, op: BlockOp) -> Vec<&'a Block> {
    if call.kind == CallKind::Await {
        return Vec::new();
    }
    let blocks = view.blocks(call.start_ns, call.end_ns).iter();
    blocks
        .filter(|b| b.op == op && b.thread == call.thread)
        .collect()
}
