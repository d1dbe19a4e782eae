//! The page cache: its contents, the reads that another size would answer, and its dirty pages.
//!
//! Nothing here depends on turns or the log's flushes.

pub(crate) mod read_cpu;
pub(crate) mod reuse_distances;
mod reuse_observer;

use std::collections::{BTreeMap, BTreeSet};

use tierwise_recording::{
    About, Block, BlockOp, Call, CallKind, PAGE_BYTES, Role, StateKind, UNKNOWN,
};

use crate::address_space::role_page_range;
use crate::constants::{CACHE_SURE_SHARE, FEW_SHARE};
use crate::recording_rows::RecordingRows;
use crate::recording_view::RecordingView;
use crate::{PageCache, ReuseDistanceClass, SectorRange};

// Size of the page cache, inferred from its hits and misses, and whether the recording shows them.

pub(crate) const CLASSES: usize = 256;
/// Limit on reads that no call shows.
const MOST_UNSEEN_SECTORS: u64 = 2048;

/// Reads of pages by the class of their reuse: those found in the cache, and those that missed.
pub(crate) type ReuseCounts = [[u64; CLASSES]; 2];

/// Reads that a cache of each class's size would have answered differently.
fn contradicting_reads([found, missed]: &ReuseCounts) -> [u64; CLASSES] {
    let mut wrong = [0; CLASSES];
    let mut count: u64 = found[1..].iter().sum();
    for class in 1..CLASSES {
        wrong[class] = count;
        count = count - found[class] + missed[class];
    }
    wrong
}

/// The page cache; `past`: roles whose files are read past it.
pub(crate) fn recorded_page_cache(
    rows: &RecordingRows<'_>,
    counts: &ReuseCounts,
    past: &[Role],
) -> PageCache {
    let about = &rows.recording.about;
    let engine_bytes = rows.engine.buffer_bytes(&about.settings);
    let wrong = contradicting_reads(counts);
    let best = wrong[1..].iter().copied().min().unwrap_or(0);
    let [found, missed] = counts.map(|counts| counts.iter().sum::<u64>());
    let enough = best + (missed as f64 * FEW_SHARE.get()) as u64;
    let fits = |class: &u8| wrong[usize::from(*class)] <= enough;
    let bytes = |class: Option<u8>| {
        let pages = class.and_then(|class| ReuseDistanceClass(class).pages());
        let bytes = pages.unwrap_or(0).saturating_mul(PAGE_BYTES);
        bytes.min(about.machine.memory_bytes)
    };
    let (left, sure) = memory_for_pages(about, engine_bytes);
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
        reason: unknown_hits_reason(rows, past),
    }
}

/// Memory available for pages of files, and the part of it that is certain: some memory of processes may have
/// been missed.
fn memory_for_pages(about: &About, engine_bytes: u64) -> (u64, u64) {
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
fn unknown_hits_reason(rows: &RecordingRows<'_>, past: &[Role]) -> Option<String> {
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
        let percent = unexplained_reads_share(rows)? * 100.0;
        Some(format!(
            "{percent:.0} % of what was read came without a call, as through mmap, whose hits are not seen"
        ))
    }
}

/// The share of the engine's reads that no call explains, if it is too large.
fn unexplained_reads_share(rows: &RecordingRows<'_>) -> Option<f64> {
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
    (unseen > MOST_UNSEEN_SECTORS && share > FEW_SHARE.get()).then_some(share)
}

/// Roles whose files are read through the page cache: most of their reads do not wait.
pub(crate) fn cached_roles(rows: &RecordingRows<'_>) -> Vec<Role> {
    let cached = reads_by_role(rows)
        .into_iter()
        .filter(|(_, (all, at_once))| *at_once as f64 >= *all as f64 * FEW_SHARE.get());
    cached.map(|(role, _)| role).collect()
}

/// Calls that read files of each role, and those in which the caller did not wait.
fn reads_by_role(rows: &RecordingRows<'_>) -> BTreeMap<Role, (u64, u64)> {
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

// Pages written into the page cache earlier in the same burst, and the largest number that were dirty at
// once.
//
// A page that a sync wrote was dirtied either by a recorded write or in a gap between bursts. A recorded
// write is a step of its own, and a replay's sync writes the page because it is dirty. For a gap, only the
// sync shows the page.

/// Largest number of pages that a call moves (`MAX_RW_COUNT`).
const MOST_PAGES: usize = 1 << 19;

/// When each page was first written, by role, burst and page.
pub(crate) struct FirstWrites {
    first_ns: BTreeMap<(Role, usize, u64), u64>,
    /// Ends of bursts.
    ends_ns: Vec<u64>,
}

impl FirstWrites {
    pub(crate) fn new(view: &RecordingView<'_>) -> Self {
        let bursts = &view.recording.about.bursts;
        let mut dirtied = Self {
            first_ns: BTreeMap::new(),
            ends_ns: bursts.iter().map(|burst| burst.end_ns).collect(),
        };
        for call in &view.recording.calls {
            let Some(place) = written_pages(view, call).filter(|place| place.0 != Role::Log) else {
                continue;
            };
            for page in dirtied.keys(place, call.end_ns) {
                let first = dirtied.first_ns.entry(page).or_insert(u64::MAX);
                *first = (*first).min(call.end_ns);
            }
        }
        dirtied
    }

    /// Whether any of these pages was written before an instant, in the same burst.
    pub(crate) fn before(&self, place: SectorRange, time_ns: u64) -> bool {
        self.keys(place, time_ns).any(|page| {
            let first = self.first_ns.get(&page);
            first.is_some_and(|&first| first < time_ns)
        })
    }

    fn keys(
        &self,
        (role, sector, sectors): SectorRange,
        time_ns: u64,
    ) -> impl Iterator<Item = (Role, usize, u64)> + use<> {
        let before_ns = time_ns.saturating_sub(1);
        let burst = self.ends_ns.partition_point(|&end_ns| end_ns <= before_ns);
        let pages = role_page_range(sector, sectors.max(1)).take(MOST_PAGES);
        pages.map(move |page| (role, burst, page))
    }
}

/// Most bytes that were dirty at once or on their way to the device, of pages whose write was recorded.
pub(crate) fn most_dirty_bytes(view: &RecordingView<'_>) -> u64 {
    let mut changes: Vec<(u64, SectorRange, bool)> = Vec::new();
    for call in &view.recording.calls {
        let dirtied = written_pages(view, call).into_iter();
        changes.extend(dirtied.map(|place| (call.end_ns, place, true)));
        changes.extend(truncated_pages(view, call).map(|place| (call.end_ns, place, false)));
    }
    for block in &view.recording.blocks {
        if block.op == BlockOp::Write
            && let Some((role, sector)) = view.address_space.of_block(view, block)
        {
            let place = (role, sector, block.sectors);
            changes.push((block.completed_ns, place, false));
        }
    }
    changes.sort_by_key(|&(time_ns, ..)| time_ns);
    let mut bursts = view.recording.about.bursts.iter().peekable();
    let mut dirty: BTreeSet<(Role, u64)> = BTreeSet::new();
    let mut most = 0;
    for (time_ns, (role, sector, sectors), dirties) in changes {
        while bursts.next_if(|burst| burst.end_ns <= time_ns).is_some() {
            dirty.clear();
        }
        let pages = role_page_range(sector, sectors.max(1));
        if dirties {
            dirty.extend(pages.take(MOST_PAGES).map(|page| (role, page)));
        } else {
            let range = (role, pages.start)..(role, pages.end);
            let clean: Vec<_> = dirty.range(range).copied().collect();
            for page in clean {
                dirty.remove(&page);
            }
        }
        most = most.max(dirty.len() as u64);
    }
    most * PAGE_BYTES
}

/// Pages that a call writes into the page cache.
fn written_pages(view: &RecordingView<'_>, call: &Call) -> Option<SectorRange> {
    let writes = call.kind == CallKind::Write && call.size_bytes > 0;
    if !writes || call.failed || call.asynchronous || view.is_direct(call) {
        return None;
    }
    view.address_space.of_call(view, call)
}

/// Pages of a file that a call truncates: they do not stay dirty.
fn truncated_pages(view: &RecordingView<'_>, call: &Call) -> impl Iterator<Item = SectorRange> {
    let cuts = call.kind == CallKind::Resize && call.size_bytes == 0;
    let role = view.role(call.file);
    let role = role.filter(|_| cuts && !call.failed && !call.asynchronous);
    let ranges = role.map(|role| (role, view.address_space.cut_by(call)));
    ranges.into_iter().flat_map(|(role, ranges)| {
        let ranges = ranges.into_iter();
        ranges.map(move |(sector, sectors)| (role, sector, sectors))
    })
}
