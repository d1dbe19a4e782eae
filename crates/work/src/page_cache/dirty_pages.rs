//! Pages written into the page cache earlier in the same burst, and the largest number that were dirty at
//! once.
//!
//! A page that a sync wrote was dirtied either by a recorded write or in a gap between bursts. A recorded
//! write is a step of its own, and a replay's sync writes the page because it is dirty. For a gap, only the
//! sync shows the page.

use std::collections::{BTreeMap, BTreeSet};

use tierwise_recording::{BlockOp, Call, CallKind, PAGE_BYTES, Role};

use crate::Place;
use crate::address_space::pages_of;
use crate::view::View;

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
        for call in &view.recording.calls {
            let Some(place) = written(view, call).filter(|place| place.0 != Role::Log) else {
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
    pub(crate) fn before(&self, place: Place, time_ns: u64) -> bool {
        self.keys(place, time_ns).any(|page| {
            let first = self.first_ns.get(&page);
            first.is_some_and(|&first| first < time_ns)
        })
    }

    fn keys(
        &self,
        (role, sector, sectors): Place,
        time_ns: u64,
    ) -> impl Iterator<Item = (Role, usize, u64)> + use<> {
        let before_ns = time_ns.saturating_sub(1);
        let burst = self.ends_ns.partition_point(|&end_ns| end_ns <= before_ns);
        let pages = pages_of(sector, sectors.max(1)).take(MOST_PAGES);
        pages.map(move |page| (role, burst, page))
    }
}

/// Most bytes that were dirty at once or on their way to the device, of pages whose write was recorded.
pub(crate) fn most_dirty_bytes(view: &View<'_>) -> u64 {
    let mut changes: Vec<(u64, Place, bool)> = Vec::new();
    for call in &view.recording.calls {
        let dirtied = written(view, call).into_iter();
        changes.extend(dirtied.map(|place| (call.end_ns, place, true)));
        changes.extend(cut(view, call).map(|place| (call.end_ns, place, false)));
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
        let pages = pages_of(sector, sectors.max(1));
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
fn written(view: &View<'_>, call: &Call) -> Option<Place> {
    let writes = call.kind == CallKind::Write && call.size_bytes > 0;
    if !writes || call.failed || call.asynchronous || view.is_direct(call) {
        return None;
    }
    view.address_space.of_call(view, call)
}

/// Pages of a file that a call truncates: they do not stay dirty.
fn cut(view: &View<'_>, call: &Call) -> impl Iterator<Item = Place> {
    let cuts = call.kind == CallKind::Resize && call.size_bytes == 0;
    let role = view.role(call.file);
    let role = role.filter(|_| cuts && !call.failed && !call.asynchronous);
    let ranges = role.map(|role| (role, view.address_space.cut_by(call)));
    ranges.into_iter().flat_map(|(role, ranges)| {
        let ranges = ranges.into_iter();
        ranges.map(move |(sector, sectors)| (role, sector, sectors))
    })
}
