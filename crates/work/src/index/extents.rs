//! Extents of files on their devices, inferred from requests.
//!
//! A read that a thread sent in a call and waited for begins at the call's offset, so it shows that offset's
//! sector. Files are assumed contiguous between two such places; a new extent begins where two places do not
//! fit together.

use tierwise_recording::{Block, BlockOp, CallKind, StateKind, UNKNOWN};

use crate::constants::{EARLY_NS, WOKEN_NS};
use crate::index::rows::Rows;
use crate::index::sizes::SECTOR_BYTES;

/// Largest read-ahead.
const AHEAD_SECTORS: i128 = 4096;

/// One file's extents: the first file sector of each and its position; none if nothing is known.
pub(crate) type Extents = Vec<(u64, u64)>;

/// The extents of all files, in sectors of their partitions.
pub(crate) fn extents(rows: &Rows<'_>) -> Vec<Extents> {
    let mut told: Vec<Extents> = vec![Vec::new(); rows.recording.files.len()];
    let mut lowest: Vec<Option<u64>> = vec![None; told.len()];
    for block in &rows.recording.blocks {
        let file = block.file as usize;
        if file >= told.len() || block.sector == UNKNOWN || block.sectors == 0 {
            continue;
        }
        let (offset, waited) = offset(rows, block);
        let start = block.sector.saturating_sub(offset.unwrap_or(0));
        lowest[file] = Some(lowest[file].map_or(start, |lowest| lowest.min(start)));
        if let (Some(offset), true) = (offset, waited) {
            told[file].push((offset, block.sector));
        }
    }
    let known = told.into_iter().zip(lowest);
    known
        .map(|(told, lowest)| match (joined(told), lowest) {
            (extents, Some(start)) if extents.is_empty() => vec![(0, start)],
            (extents, _) => extents,
        })
        .collect()
}

/// First file sector of the call that sent the request, and whether the call waited for the request.
fn offset(rows: &Rows<'_>, block: &Block) -> (Option<u64>, bool) {
    let call = rows.call_at(block.thread, block.issued_ns);
    let fits = call.filter(|call| call.file == block.file && call.offset_bytes != UNKNOWN);
    let Some(call) = fits else {
        return (None, false);
    };
    let states = rows.states(block.thread);
    let next = states.partition_point(|state| state.end_ns + EARLY_NS.get() < block.completed_ns);
    let waited = states[next..].iter().take(2).any(|state| {
        let within = rows.call(state.call);
        state.kind == StateKind::Blocked
            && within.is_some_and(|within| within.start_ns == call.start_ns)
            && state.start_ns <= block.completed_ns
            && state.end_ns <= block.completed_ns + WOKEN_NS.get()
    });
    let reads = call.kind == CallKind::Read && block.op == BlockOp::Read;
    (Some(call.offset_bytes / SECTOR_BYTES), waited && reads)
}

/// Merges places into extents; the first begins the file. If places differ by less than one read-ahead, the
/// lowest is right: the others are requests for data after the call's.
fn joined(mut told: Extents) -> Extents {
    told.sort_unstable();
    let mut parts: Vec<(u64, i128)> = Vec::new();
    for (offset, sector) in told {
        let base = i128::from(sector) - i128::from(offset);
        match parts.last_mut() {
            Some(part) if (part.1 - base).abs() <= AHEAD_SECTORS => part.1 = part.1.min(base),
            _ => parts.push((offset, base)),
        }
    }
    if let Some(first) = parts.first_mut() {
        first.0 = 0;
    }
    let place = |(offset, base): (u64, i128)| {
        let start = i128::from(offset) + base;
        (offset, u64::try_from(start.max(0)).unwrap_or(u64::MAX))
    };
    parts.into_iter().map(place).collect()
}

/// Position of a file's sector.
pub(crate) fn locate(extents: &[(u64, u64)], sector: u64) -> u64 {
    let next = extents.partition_point(|extent| extent.0 <= sector);
    let (first, start) = extents[..next].last().copied().unwrap_or((0, 0));
    start.saturating_add(sector - first)
}

/// The ranges that contain the file's sectors from one to another, as first sector and end.
pub(crate) fn ranges(extents: &[(u64, u64)], from: u64, to: u64) -> Vec<(u64, u64)> {
    let inside = extents.iter().map(|extent| extent.0);
    let mut cuts: Vec<u64> = inside.filter(|&at| from < at && at < to).collect();
    cuts.push(to);
    let mut first = from;
    let mut found = Vec::new();
    for cut in cuts {
        let start = locate(extents, first);
        found.push((start, start.saturating_add(cut - first)));
        first = cut;
    }
    found
}
