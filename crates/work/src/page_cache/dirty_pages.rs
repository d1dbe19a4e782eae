//! Pages written into the page cache earlier in the same burst, and the largest number that were dirty at
//! once.
//!
//! A page that a sync wrote was dirtied either by a recorded write or in a gap between bursts. A recorded
//! write is a step of its own, and a replay's sync writes the page because it is dirty. For a gap, only the
//! sync shows the page.

use std::collections::{BTreeMap, BTreeSet};

use tierwise_recording::{BlockOp, Call, CallKind, Role};

use crate::index::address_space::pages_of;
use crate::index::sizes::PAGE_BYTES;
use crate::index::view::View;

/// Largest number of pages that a call moves (`MAX_RW_COUNT`).
const MOST_PAGES: usize = 1 << 19;

/// When each page was first written, by role, burst and page.
pub(crate) struct DirtyPages {
    first_ns: BTreeMap<(Role, usize, u64), u64>,
    /// Ends of bursts.
    ends_ns: Vec<u64>,
}

impl DirtyPages {
    pub(crate) fn new(view: &View<'_>) -> Self {
        let bursts = &view.recording.about.bursts;
        let mut dirtied = Self {
            first_ns: BTreeMap::new(),
            ends_ns: bursts.iter().map(|burst| burst.end_ns).collect(),
        };
        let written = dirtying(view).into_iter();
        for change in written.filter(|change| change.dirties && change.role != Role::Log) {
            let burst = dirtied.burst(change.time_ns.saturating_sub(1));
            for page in pages_of(change.sector, change.sectors.max(1)).take(MOST_PAGES) {
                let key = (change.role, burst, page);
                let first = dirtied.first_ns.entry(key).or_insert(u64::MAX);
                *first = (*first).min(change.time_ns);
            }
        }
        dirtied
    }

    /// Whether any of these pages was written before an instant, in the same burst.
    pub(crate) fn before(&self, role: Role, sector: u64, sectors: u32, time_ns: u64) -> bool {
        let burst = self.burst(time_ns.saturating_sub(1));
        let mut pages = pages_of(sector, sectors.max(1)).take(MOST_PAGES);
        pages.any(|page| {
            let first = self.first_ns.get(&(role, burst, page));
            first.is_some_and(|&first| first < time_ns)
        })
    }

    fn burst(&self, time_ns: u64) -> usize {
        self.ends_ns.partition_point(|&end_ns| end_ns <= time_ns)
    }
}

/// Most bytes that were dirty at once or on their way to the device, of pages whose write was recorded.
pub(crate) fn most_dirty_bytes(view: &View<'_>) -> u64 {
    let mut changes = dirtying(view);
    changes.extend(cleaning(view));
    changes.sort_unstable_by_key(|change| change.time_ns);
    let mut bursts = view.recording.about.bursts.iter().peekable();
    let mut dirty: BTreeSet<(Role, u64)> = BTreeSet::new();
    let mut most = 0;
    for change in &changes {
        while bursts
            .next_if(|burst| burst.end_ns <= change.time_ns)
            .is_some()
        {
            dirty.clear();
        }
        let pages = pages_of(change.sector, change.sectors.max(1));
        if change.dirties {
            let written = pages.take(MOST_PAGES);
            dirty.extend(written.map(|page| (change.role, page)));
        } else {
            let range = (change.role, pages.start)..(change.role, pages.end);
            let clean: Vec<_> = dirty.range(range).copied().collect();
            for page in clean {
                dirty.remove(&page);
            }
        }
        most = most.max(dirty.len() as u64);
    }
    most * PAGE_BYTES
}

/// Pages that become dirty, or clean.
struct Change {
    time_ns: u64,
    role: Role,
    sector: u64,
    sectors: u32,
    dirties: bool,
}

/// Writes into the page cache, and truncated files: their pages do not stay dirty.
fn dirtying(view: &View<'_>) -> Vec<Change> {
    let calls = view.recording.calls.iter();
    calls
        .filter(|call| !call.failed && !call.asynchronous)
        .flat_map(|call| match call.kind {
            CallKind::Write if call.size_bytes > 0 && !view.is_direct(call) => {
                let place = view.address_space.of_call(view, call);
                let written = place.map(|(role, sector, sectors)| (role, sector, sectors, true));
                changes(call, written.into_iter().collect())
            }
            CallKind::Resize if call.size_bytes == 0 => changes(call, cut(view, call)),
            _ => Vec::new(),
        })
        .collect()
}

fn changes(call: &Call, places: Vec<(Role, u64, u32, bool)>) -> Vec<Change> {
    let change = |(role, sector, sectors, dirties)| Change {
        time_ns: call.end_ns,
        role,
        sector,
        sectors,
        dirties,
    };
    places.into_iter().map(change).collect()
}

fn cut(view: &View<'_>, call: &Call) -> Vec<(Role, u64, u32, bool)> {
    let Some(role) = view.role(call.file) else {
        return Vec::new();
    };
    let ranges = view.address_space.cut_by(call).into_iter();
    ranges
        .map(|(sector, sectors)| (role, sector, sectors, false))
        .collect()
}

fn cleaning(view: &View<'_>) -> Vec<Change> {
    let blocks = view.recording.blocks.iter();
    blocks
        .filter(|block| block.op == BlockOp::Write)
        .filter_map(|block| {
            let (role, sector) = view.address_space.of_block(view, block)?;
            Some(Change {
                time_ns: block.completed_ns,
                role,
                sector,
                sectors: block.sectors,
                dirties: false,
            })
        })
        .collect()
}
