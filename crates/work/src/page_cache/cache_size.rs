//! Size of the page cache, inferred from its hits and misses, and whether the recording shows them.

use std::collections::{BTreeMap, BTreeSet};

use tierwise_recording::{About, Block, BlockOp, Call, CallKind, Role, StateKind, UNKNOWN};

use crate::constants::{
    CACHE_SIZE_TOLERANCE_SHARE, CACHE_SURE_SHARE, READ_AHEAD_LEAST_SHARE, UNSEEN_MOST_SHARE,
};
use crate::rows::Rows;
use crate::{PageCache, Reuse};
use tierwise_recording::PAGE_BYTES;

pub(crate) const CLASSES: usize = 256;
/// Limit on reads that no call shows.
const MOST_UNSEEN_SECTORS: u64 = 2048;

/// Reads of pages by the class of their reuse: those found in the cache, and those that missed.
pub(crate) type Counts = [[u64; CLASSES]; 2];

/// Reads that a cache of each class's size would have answered differently.
fn contradictions([found, missed]: &Counts) -> [u64; CLASSES] {
    let mut wrong = [0; CLASSES];
    let mut count: u64 = found[1..].iter().sum();
    for class in 1..CLASSES {
        wrong[class] = count;
        count = count - found[class] + missed[class];
    }
    wrong
}

/// The page cache; `past`: roles whose files are read past it.
pub(crate) fn page_cache(rows: &Rows<'_>, counts: &Counts, past: &[Role]) -> PageCache {
    let about = &rows.recording.about;
    let engine_bytes = rows.engine.buffer_bytes(&about.settings);
    let wrong = contradictions(counts);
    let best = wrong[1..].iter().copied().min().unwrap_or(0);
    let [found, missed] = counts.map(|counts| counts.iter().sum::<u64>());
    let enough = best + (missed as f64 * CACHE_SIZE_TOLERANCE_SHARE.get()) as u64;
    let fits = |class: &u8| wrong[usize::from(*class)] <= enough;
    let bytes = |class: Option<u8>| {
        let pages = class.and_then(|class| Reuse(class).pages());
        let bytes = pages.unwrap_or(0).saturating_mul(PAGE_BYTES);
        bytes.min(about.machine.memory_bytes)
    };
    let (left, sure) = left(about, engine_bytes);
    let least = bytes((1..=u8::MAX).find(fits));
    let most = bytes((1..=u8::MAX).rev().find(fits)).max(least);
    let least = least.max(sure.min(most));
    PageCache {
        least_bytes: least,
        likely_bytes: left.clamp(least, most),
        most_bytes: most,
        unexplained: best as f64 / (found + missed).max(1) as f64,
        engine_bytes,
        passed: !past.is_empty(),
        cold: false,
        reason: reason(rows, past),
    }
}

/// Memory available for pages of files, and the part of it that is certain: some memory of processes may have
/// been missed.
fn left(about: &About, engine_bytes: u64) -> (u64, u64) {
    let machine = &about.machine;
    match machine.processes_bytes {
        0 => (machine.memory_bytes.saturating_sub(engine_bytes), 0),
        held => {
            let left = machine.memory_bytes.saturating_sub(held);
            (left, (left as f64 * CACHE_SURE_SHARE.get()) as u64)
        }
    }
}

/// Why the recording does not tell which reads the page cache answered, if it does not.
fn reason(rows: &Rows<'_>, past: &[Role]) -> Option<String> {
    let cached = |call: &&Call| {
        let role = rows.role(call.file);
        call.kind == CallKind::Read && role.is_some_and(|role| !past.contains(&role))
    };
    let reads: Vec<&Call> = rows.recording.calls.iter().filter(cached).collect();
    let most = |what: &dyn Fn(&Call) -> bool| {
        reads.iter().filter(|call| what(call)).count() > reads.len() / 2
    };
    if rows.recording.blocks.is_empty() {
        Some("requests to devices were not recorded, so which reads missed is not known".to_owned())
    } else if most(&|call| call.offset_bytes == UNKNOWN) {
        Some("where in their files most reads were is not known".to_owned())
    } else if most(&|call| call.asynchronous) {
        let unseen = "most reads were handed in asynchronously, and whether the page cache answered is not seen";
        Some(unseen.to_owned())
    } else {
        let percent = without_call(rows)? * 100.0;
        Some(format!(
            "{percent:.0} % of what was read came without a call, as through mmap, whose hits are not seen"
        ))
    }
}

/// The share of the engine's reads that no call explains, if it is too large.
fn without_call(rows: &Rows<'_>) -> Option<f64> {
    let ours = |block: &&Block| {
        let of_file = block.op == BlockOp::Read && rows.role(block.file).is_some();
        of_file && rows.is_engines(block.thread)
    };
    let (mut unseen, mut all) = (0, 0);
    for block in rows.recording.blocks.iter().filter(ours) {
        let sectors = u64::from(block.sectors);
        all += sectors;
        if rows.call_at(block.thread, block.issued_ns).is_none() {
            unseen += sectors;
        }
    }
    let share = unseen as f64 / all.max(1) as f64;
    (unseen > MOST_UNSEEN_SECTORS && share > UNSEEN_MOST_SHARE.get()).then_some(share)
}

/// Roles whose files are read through the page cache: most of their reads do not wait.
pub(crate) fn cached_roles(rows: &Rows<'_>) -> Vec<Role> {
    let cached = reads(rows).into_iter().filter(|(_, (all, at_once))| {
        *at_once as f64 >= *all as f64 * READ_AHEAD_LEAST_SHARE.get()
    });
    cached.map(|(role, _)| role).collect()
}

/// Calls that read files of each role, and those in which the caller did not wait.
fn reads(rows: &Rows<'_>) -> BTreeMap<Role, (u64, u64)> {
    let states = rows.recording.states.iter();
    let blocked = states.filter(|state| state.kind == StateKind::Blocked);
    let waited: BTreeSet<u32> = blocked.map(|state| state.call).collect();
    let mut reads: BTreeMap<Role, (u64, u64)> = BTreeMap::new();
    for (index, call) in rows.recording.calls.iter().enumerate() {
        let moves = call.kind == CallKind::Read && !call.asynchronous && call.size_bytes > 0;
        if let Some(role) = rows.role(call.file).filter(|_| moves) {
            let (all, at_once) = reads.entry(role).or_default();
            *all += 1;
            *at_once += u64::from(!waited.contains(&(index as u32)));
        }
    }
    reads
}
