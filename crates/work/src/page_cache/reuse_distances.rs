//! Reuse distances of all reads, which give the hits of a page cache of any size.
//!
//! The recording shows every read call, hit or miss, and every request to a device. So the reuse distance of
//! each read is known within a recording without gaps, and hits and misses by distance give the cache's size.

use std::collections::HashMap;
use std::ops::Range;

use tierwise_recording::{Block, BlockOp, Call, CallKind, PAGE_BYTES, Role, SECTOR_BYTES, UNKNOWN};

use crate::address_space::role_page_range;
use crate::constants::MAJORITY_SHARE;
use crate::page_cache::reuse_observer::ReuseObserver;
use crate::page_cache::{CLASSES, ReuseCounts, recorded_page_cache};
use crate::recording_rows::RecordingRows;
use crate::recording_view::RecordingView;
use crate::{PageCache, ReadReuse, ReuseCurve, ReuseDistanceClass, SectorRange, Step};

/// A page key has the role in the bits above the page number.
const ROLE_SHIFT: u32 = 56;
/// Largest size of a call (`MAX_RW_COUNT` in Linux's include/linux/fs.h), and of a request.
const MOST_BYTES: u64 = 0x7fff_f000;

/// Roles whose pages an engine keeps in a buffer of its own, if it has one.
pub(crate) const BUFFERED: [Role; 5] = [
    Role::Data,
    Role::Index,
    Role::Selected,
    Role::Undo,
    Role::System,
];

/// The reuse of every read call, by its row, and of every read request, by its position and time.
pub(crate) struct ReuseDistances {
    calls: Vec<ReadReuse>,
    requests: HashMap<(Role, u64), Vec<(u64, ReuseDistanceClass)>>,
}

impl ReuseDistances {
    /// Of a whole recording, with its estimate of the page cache, and the curves of it and of the engine's buffer.
    pub(crate) fn new(view: &RecordingView<'_>) -> (Self, PageCache, [ReuseCurve; 2]) {
        let recording = view.recording;
        let mut scan = ReuseScan {
            view,
            cache: ReuseObserver::default(),
            buffer: ReuseObserver::default(),
            counts: [[0; CLASSES]; 2],
            spans: vec![UnbrokenSpan::default()],
            found: Self {
                calls: vec![ReadReuse::cached(ReuseDistanceClass::UNKNOWN); recording.calls.len()],
                requests: HashMap::new(),
            },
            past: view.engine.past_page_cache(&recording.about.settings),
        };
        scan.all();
        let mut cache = recorded_page_cache(view, &scan.counts, scan.past);
        cache.cold = scan.first_requests_never(cache.likely_bytes);
        let pages = |counts: &dyn Fn(&Role) -> bool| {
            let regions = view.address_space.regions.iter();
            let counted = regions.filter(|region| counts(region.0));
            counted.map(|region| region.1.used).sum::<u64>() * SECTOR_BYTES / PAGE_BYTES
        };
        let curves = [
            scan.cache.curve(pages(&|role| !scan.past.contains(role))),
            scan.buffer.curve(pages(&|role| BUFFERED.contains(role))),
        ];
        (scan.found, cache, curves)
    }

    /// Of a step's read, if it reads; with the instant of the request and its call, if it has one.
    pub(crate) fn of(&self, step: &Step, time_ns: u64, call: Option<u32>) -> Option<ReadReuse> {
        let of_call = call.and_then(|row| self.calls.get(row as usize).copied());
        let buffer = of_call.map_or(ReuseDistanceClass::NEVER, |call| call.buffer);
        let of_call = of_call.map(|call| call.cache);
        let cache = match *step {
            Step::CachedRead { .. } => Some(of_call.unwrap_or(ReuseDistanceClass::after(0))),
            Step::Read { role, sector, .. }
            | Step::Submit {
                role,
                sector,
                write: false,
                ..
            } => {
                let request = self.of_request(role, sector, time_ns);
                Some(request.or(of_call).unwrap_or_default())
            }
            _ => None,
        };
        cache.map(|cache| ReadReuse { cache, buffer })
    }

    /// Of the first request for a sector at or after an instant, or else the last before.
    fn of_request(&self, role: Role, sector: u64, from_ns: u64) -> Option<ReuseDistanceClass> {
        let requests = self.requests.get(&(role, sector))?;
        let next = requests.partition_point(|request| request.0 < from_ns);
        let request = requests.get(next).or(requests.last());
        request.map(|request| request.1)
    }
}

/// A time span without a gap, with the pages used since its start.
#[derive(Debug, Default)]
struct UnbrokenSpan {
    /// Pages read for the first time in the span: those found in the cache, and those read from a device.
    first_uses: (u64, u64),
    /// Requests of unknown reuse: their position, and their number there.
    unknown: Vec<((Role, u64), usize)>,
}

struct ReuseScan<'a> {
    view: &'a RecordingView<'a>,
    /// Pages used in the page cache.
    cache: ReuseObserver,
    /// Pages read into the engine's buffer.
    buffer: ReuseObserver,
    counts: ReuseCounts,
    /// The current span last.
    spans: Vec<UnbrokenSpan>,
    found: ReuseDistances,
    /// Roles whose files are read and written past the page cache.
    past: &'static [Role],
}

impl ReuseScan<'_> {
    /// Processes all bursts by time; accesses before a gap give no information on those after it.
    fn all(&mut self) {
        let recording = self.view.recording;
        let mut breaks = cache_discontinuities(self.view).into_iter().peekable();
        for (time_ns, access) in page_accesses(self.view) {
            while breaks.next_if(|at| *at <= time_ns).is_some() {
                self.cache.end_span();
                self.buffer.end_span();
                self.spans.push(UnbrokenSpan::default());
            }
            match access {
                PageAccess::Block(number) => self.block(&recording.blocks[number]),
                PageAccess::Call(number) => self.call(number, &recording.calls[number]),
            }
        }
        self.cache.end_span();
        self.buffer.end_span();
    }

    fn block(&mut self, block: &Block) {
        let Some((role, sector)) = self.view.address_space.of_block(self.view, block) else {
            return;
        };
        let (reuse, first) = self.touch((role, sector, block.sectors), true);
        let requests = self.found.requests.entry((role, sector)).or_default();
        requests.push((block.issued_ns, reuse));
        if let Some(span) = self.spans.last_mut() {
            span.first_uses.1 += first;
            if reuse == ReuseDistanceClass::UNKNOWN {
                span.unknown.push(((role, sector), requests.len() - 1));
            }
        }
    }

    fn call(&mut self, number: usize, call: &Call) {
        let Some(place) = self.view.address_space.of_call(self.view, call) else {
            return;
        };
        match call.kind {
            // Pages of a truncated or deleted file occupy no cache.
            CallKind::Resize => {
                for (sector, sectors) in self.view.address_space.cut_by(call) {
                    self.cache.forget(page_keys((place.0, sector, sectors)));
                    self.buffer.forget(page_keys((place.0, sector, sectors)));
                }
            }
            CallKind::Read => {
                let (reuse, first) = self.touch(place, false);
                let buffer = match BUFFERED.contains(&place.0) {
                    true => self.buffer.read(page_keys(place), |_| ()).0,
                    false => ReuseDistanceClass::NEVER,
                };
                self.found.calls[number] = ReadReuse {
                    cache: reuse,
                    buffer,
                };
                if let Some(span) = self.spans.last_mut() {
                    span.first_uses.0 += first;
                }
            }
            _ if self.past.contains(&place.0) => {}
            _ => page_keys(place).for_each(|page| {
                self.cache.touch(page);
            }),
        }
    }

    /// Uses pages; returns the longest reuse of previously used pages, unless most are new, and the number of
    /// new pages.
    fn touch(&mut self, place: SectorRange, missed: bool) -> (ReuseDistanceClass, u64) {
        if self.past.contains(&place.0) {
            return (ReuseDistanceClass::NEVER, 0);
        }
        let counts = &mut self.counts[usize::from(missed)];
        self.cache.read(page_keys(place), |reuse| {
            counts[usize::from(reuse.0)] += 1;
        })
    }

    /// If caches were empty at the start, no cache answers a first use. Checks that they were empty at the
    /// start of every span: caches already in use would have held their part of the files.
    fn first_requests_never(&mut self, cache_bytes: u64) -> bool {
        let regions = self.view.address_space.regions.values();
        let used: u64 = regions.map(|region| region.used).sum();
        let files_bytes = (used * SECTOR_BYTES).max(1);
        let expected = (cache_bytes as f64 / files_bytes as f64).min(1.0);
        let whole = self.view.is_whole();
        let mut all = true;
        for span in &self.spans {
            let (found, brought) = span.first_uses;
            let most = MAJORITY_SHARE.get() * expected * (found + brought) as f64;
            if !whole || found as f64 >= most {
                all &= found + brought == 0;
                continue;
            }
            for (place, number) in &span.unknown {
                if let Some(requests) = self.found.requests.get_mut(place) {
                    requests[*number].1 = ReuseDistanceClass::NEVER;
                }
            }
        }
        whole && all
    }
}

/// The keys of the pages of a place.
fn page_keys((role, sector, sectors): SectorRange) -> Range<u64> {
    let pages = role_page_range(sector, sectors);
    let role = (role as u64) << ROLE_SHIFT;
    role | pages.start..role | pages.end
}

/// An access to pages: index of its row among the calls or among the block requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PageAccess {
    Block(usize),
    Call(usize),
}

/// All uses of pages, by time: requests at submission, calls at completion, because a call's device requests
/// precede its completion.
fn page_accesses(rows: &RecordingRows<'_>) -> Vec<(u64, PageAccess)> {
    let mut accesses = Vec::new();
    for (number, block) in rows.recording.blocks.iter().enumerate() {
        let bytes = u64::from(block.sectors) * SECTOR_BYTES;
        if block.op == BlockOp::Read && bytes <= MOST_BYTES {
            accesses.push((block.issued_ns, PageAccess::Block(number)));
        }
    }
    for (number, call) in rows.recording.calls.iter().enumerate() {
        let uses = match call.kind {
            CallKind::Read | CallKind::Write => {
                call.offset_bytes != UNKNOWN && (1..=MOST_BYTES).contains(&call.size_bytes)
            }
            CallKind::Resize => call.size_bytes == 0,
            _ => false,
        };
        if uses && !call.failed {
            // A caller that continues before its request is done uses its pages before the device receives the
            // request.
            let time_ns = match call.asynchronous {
                true => call.start_ns,
                false => call.end_ns,
            };
            accesses.push((time_ns, PageAccess::Call(number)));
        }
    }
    accesses.sort_unstable();
    accesses
}

/// Starts of bursts before which the page cache may have changed unseen: work continued unrecorded, or the
/// engine was restarted, as is done to begin with empty caches.
fn cache_discontinuities(rows: &RecordingRows<'_>) -> Vec<u64> {
    let whole = rows.is_whole();
    let bursts = rows.recording.about.bursts.windows(2);
    let gaps = bursts.filter(|pair| {
        let (before_ns, after_ns) = (pair[0].end_ns, pair[1].start_ns);
        after_ns > before_ns && !(whole && outlives_gap(rows, before_ns, after_ns))
    });
    gaps.map(|pair| pair[1].start_ns).collect()
}

/// Whether a thread of the engine was there before and after.
fn outlives_gap(rows: &RecordingRows<'_>, before_ns: u64, after_ns: u64) -> bool {
    let mut threads = 0..rows.recording.threads.len() as u32;
    threads.any(|thread| {
        let states = rows.states(thread);
        let (first, last) = (states.first(), states.last());
        rows.is_engines(thread)
            && first.is_some_and(|state| state.start_ns < before_ns)
            && last.is_some_and(|state| state.end_ns > after_ns)
    })
}
