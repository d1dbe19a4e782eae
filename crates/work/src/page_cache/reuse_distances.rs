//! Reuse distances of all reads, which give the hits of a page cache of any size.
//!
//! The recording shows every read call, hit or miss, and every request to a device. So the reuse distance of
//! each read is known within a recording without gaps, and hits and misses by distance give the cache's size.

use std::collections::HashMap;

use tierwise_recording::{Call, CallKind, Role};

use crate::Step;
use crate::constants::COLD_CACHE_SHARE;
use crate::index::address_space::{AddressSpace, pages_of};
use crate::index::rows::Rows;
use crate::index::sizes::SECTOR_BYTES;
use crate::page_cache::cache_size::{Counts, PageCache};
use crate::page_cache::page_accesses::{Access, accesses, discontinuities};
use crate::page_cache::reuse::{LruStack, Reuse};
use crate::page_cache::unseen_reads::reason;

/// A page key has the role in the bits above the page number.
const ROLE_SHIFT: u32 = 56;

/// The reuse of every read call, by its row, and of every read request, by its position and time.
#[derive(Debug, Default)]
pub(crate) struct ReuseDistances {
    calls: Vec<Reuse>,
    requests: HashMap<(Role, u64), Vec<(u64, Reuse)>>,
}

/// Pages of one use: their role, first page, and number.
type Pages = (Role, u64, u64);

impl ReuseDistances {
    /// Of a whole recording, with its estimate of the page cache.
    pub(crate) fn new(rows: &Rows<'_>, address_space: &AddressSpace) -> (Self, PageCache) {
        let recording = rows.recording;
        let mut scan = ReuseScan {
            rows,
            address_space,
            stack: LruStack::default(),
            counts: Counts::default(),
            spans: vec![Span::default()],
            reuse_distances: Self {
                calls: vec![Reuse::UNKNOWN; recording.calls.len()],
                requests: HashMap::new(),
            },
            past: rows.engine.past_page_cache(&recording.about.settings),
        };
        scan.all();
        let reason = reason(rows, scan.past);
        let about = &recording.about;
        let engine_bytes = rows.engine.buffer_bytes(&about.settings);
        let mut cache = PageCache::new(about, engine_bytes, &scan.counts, reason);
        cache.cold = scan.first_requests_never(cache.likely_bytes);
        cache.passed = !scan.past.is_empty();
        (scan.reuse_distances, cache)
    }

    /// Of a step's read, if it reads; with the instant of the request and its call, if it has one.
    pub(crate) fn of(&self, step: &Step, time_ns: u64, call: Option<u32>) -> Option<Reuse> {
        match *step {
            Step::CachedRead { .. } => Some(call.map_or(Reuse::after(0), |row| self.of_call(row))),
            Step::Read { role, sector, .. }
            | Step::Submit {
                role,
                sector,
                write: false,
                ..
            } => {
                let request = self.of_request(role, sector, time_ns);
                Some(
                    request
                        .or(call.map(|row| self.of_call(row)))
                        .unwrap_or_default(),
                )
            }
            _ => None,
        }
    }

    fn of_call(&self, row: u32) -> Reuse {
        self.calls.get(row as usize).copied().unwrap_or_default()
    }

    /// Of the first request for a sector at or after an instant, or else the last before.
    fn of_request(&self, role: Role, sector: u64, from_ns: u64) -> Option<Reuse> {
        let requests = self.requests.get(&(role, sector))?;
        let next = requests.partition_point(|request| request.0 < from_ns);
        let request = requests.get(next).or(requests.last());
        request.map(|request| request.1)
    }
}

/// A time span without a gap, with the pages used since its start.
#[derive(Debug, Default)]
struct Span {
    /// Pages read for the first time in the span: those found in the cache, and those read from a device.
    first_uses: (u64, u64),
    /// Requests of unknown reuse: their position, and their number there.
    unknown: Vec<((Role, u64), usize)>,
}

struct ReuseScan<'a> {
    rows: &'a Rows<'a>,
    address_space: &'a AddressSpace,
    stack: LruStack,
    counts: Counts,
    /// The current span last.
    spans: Vec<Span>,
    reuse_distances: ReuseDistances,
    /// Roles whose files are read and written past the page cache.
    past: &'static [Role],
}

impl ReuseScan<'_> {
    /// Processes all bursts by time; accesses before a gap give no information on those after it.
    fn all(&mut self) {
        let accesses = accesses(self.rows);
        let mut breaks = discontinuities(self.rows).into_iter().peekable();
        for (time_ns, access) in accesses {
            while breaks.next_if(|at| *at <= time_ns).is_some() {
                self.stack = LruStack::default();
                self.spans.push(Span::default());
            }
            match access {
                Access::Block(number) => self.block(number),
                Access::Call(number) => self.call(number),
            }
        }
    }

    fn block(&mut self, number: u32) {
        let block = &self.rows.recording.blocks[number as usize];
        let Some(place) = self.address_space.of_block(self.rows, block) else {
            return;
        };
        let (reuse, first) = self.touch(pages(place.0, place.1, block.sectors), true);
        let requests = self.reuse_distances.requests.entry(place).or_default();
        requests.push((block.issued_ns, reuse));
        if let Some(span) = self.spans.last_mut() {
            span.first_uses.1 += first;
            if reuse == Reuse::UNKNOWN {
                span.unknown.push((place, requests.len() - 1));
            }
        }
    }

    fn call(&mut self, number: u32) {
        let call = &self.rows.recording.calls[number as usize];
        let Some((role, sector, sectors)) = self.address_space.of_call(self.rows, call) else {
            return;
        };
        let pages = pages(role, sector, sectors);
        if call.kind == CallKind::Resize {
            return self.forget(call, role);
        }
        if call.kind == CallKind::Read {
            let (reuse, first) = self.touch(pages, false);
            self.reuse_distances.calls[number as usize] = reuse;
            if let Some(span) = self.spans.last_mut() {
                span.first_uses.0 += first;
            }
        } else if !self.past.contains(&role) {
            numbers(pages).for_each(|page| {
                self.stack.touch(page);
            });
        }
    }

    /// Pages of a truncated or deleted file occupy no cache.
    fn forget(&mut self, call: &Call, role: Role) {
        for (sector, sectors) in self.address_space.cut_by(call) {
            let (_, first, count) = pages(role, sector, sectors);
            let gone = number(role, first)..number(role, first + count);
            self.stack.forget(gone);
        }
    }

    /// Uses pages; returns the longest reuse of previously used pages, unless most are new, and the number of
    /// new pages.
    fn touch(&mut self, pages: Pages, missed: bool) -> (Reuse, u64) {
        if self.past.contains(&pages.0) {
            return (Reuse::NEVER, 0);
        }
        let (mut longest, mut known) = (Reuse::UNKNOWN, 0);
        for page in numbers(pages) {
            if let Some(others) = self.stack.touch(page) {
                let reuse = Reuse::after(others);
                self.counts.count(reuse, missed);
                longest = longest.max(reuse);
                known += 1;
            }
        }
        let first = pages.2 - known;
        if first > known {
            longest = Reuse::UNKNOWN;
        }
        (longest, first)
    }

    /// If caches were empty at the start, no cache answers a first use. Checks that they were empty at the
    /// start of every span: caches already in use would have held their part of the files.
    fn first_requests_never(&mut self, cache_bytes: u64) -> bool {
        let used = self.address_space.regions().map(|(_, region)| region.used);
        let files_bytes = (used.sum::<u64>() * SECTOR_BYTES).max(1);
        let expected = (cache_bytes as f64 / files_bytes as f64).min(1.0);
        let whole = self.rows.is_whole();
        let mut all = true;
        for span in &self.spans {
            let (found, brought) = span.first_uses;
            let most = COLD_CACHE_SHARE.get() * expected * (found + brought) as f64;
            if !whole || found as f64 >= most {
                all &= found + brought == 0;
                continue;
            }
            for (place, number) in &span.unknown {
                if let Some(requests) = self.reuse_distances.requests.get_mut(place) {
                    requests[*number].1 = Reuse::NEVER;
                }
            }
        }
        whole && all
    }
}

fn pages(role: Role, sector: u64, sectors: u32) -> Pages {
    let pages = pages_of(sector, sectors);
    (role, pages.start, pages.end - pages.start)
}

fn numbers((role, first, count): Pages) -> impl Iterator<Item = u64> {
    (first..first + count).map(move |page| number(role, page))
}

fn number(role: Role, page: u64) -> u64 {
    ((role as u64) << ROLE_SHIFT) | page
}
