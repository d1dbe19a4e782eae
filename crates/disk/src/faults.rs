//! Injected faults of a disk: it dies at some moment, or cannot read some sectors.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tierwise_device::{Nanos, Op, Request};

use crate::monitor::Monitor;

/// Faults of one disk, for several threads.
pub(crate) struct Faults {
    dies_at: AtomicU64,
    requests_left: AtomicU64,
    any_unreadable: AtomicBool,
    unreadable: Monitor<Vec<RangeInclusive<u64>>>,
}

const NEVER: u64 = u64::MAX;

impl Faults {
    pub fn none() -> Self {
        Self {
            dies_at: AtomicU64::new(NEVER),
            requests_left: AtomicU64::new(NEVER),
            any_unreadable: AtomicBool::new(false),
            unreadable: Monitor::new(Vec::new()),
        }
    }

    /// From this time on every request fails.
    pub fn die_at(&self, time: Nanos) {
        self.dies_at.store(time, Ordering::Release);
    }

    /// After this number of further requests every request fails.
    pub fn die_after(&self, requests: u64) {
        self.requests_left.store(requests, Ordering::Release);
    }

    pub fn dead(&self, now: Nanos) -> bool {
        now >= self.dies_at.load(Ordering::Acquire)
    }

    /// Counts a request that arrives; returns whether the disk is still alive to take it.
    pub fn take(&self, now: Nanos) -> bool {
        let one_less = |left| (left != NEVER).then(|| u64::saturating_sub(left, 1));
        let left = self
            .requests_left
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less);
        if left == Ok(0) {
            self.dies_at.fetch_min(now, Ordering::AcqRel);
        }
        !self.dead(now)
    }

    /// Reads of these sectors fail until something is written there.
    pub fn make_unreadable(&self, sectors: RangeInclusive<u64>) {
        self.unreadable.lock().push(sectors);
        self.any_unreadable.store(true, Ordering::Release);
    }

    /// Whether a completed request succeeds. One that replaces sectors makes them readable: a real disk then
    /// puts good sectors in their place.
    pub fn let_through(&self, request: &Request) -> bool {
        if request.op == Op::Flush || !self.any_unreadable.load(Ordering::Acquire) {
            return true;
        }
        let (first, end) = (request.sector, request.sector + u64::from(request.sectors));
        let mut unreadable = self.unreadable.lock();
        if request.op == Op::Read {
            return !unreadable
                .iter()
                .any(|range| *range.start() < end && *range.end() >= first);
        }
        *unreadable = unreadable
            .drain(..)
            .flat_map(|range| remainder(range, first, end))
            .collect();
        self.any_unreadable
            .store(!unreadable.is_empty(), Ordering::Release);
        true
    }
}

/// The parts of a range outside the sectors from `first` to before `end`.
fn remainder(
    range: RangeInclusive<u64>,
    first: u64,
    end: u64,
) -> impl Iterator<Item = RangeInclusive<u64>> {
    let (start, last) = range.into_inner();
    let before = (start < first).then(|| start..=last.min(first - 1));
    let after = (last >= end).then(|| start.max(end)..=last);
    before.into_iter().chain(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(op: Op, sector: u64, sectors: u32) -> Request {
        let fua = false;
        Request {
            op,
            sector,
            sectors,
            fua,
        }
    }

    #[test]
    fn an_unreadable_sector_fails_reads_until_it_is_written() {
        let faults = Faults::none();
        faults.make_unreadable(10..=19);
        let readable = |sector, sectors| faults.let_through(&request(Op::Read, sector, sectors));
        assert!(readable(0, 10) && readable(20, 8) && !readable(9, 2) && !readable(19, 1));
        assert!(!readable(0, 100));
        assert!(faults.let_through(&request(Op::Write, 12, 3)));
        assert!(readable(12, 3) && !readable(11, 1) && !readable(15, 1));
        assert!(faults.let_through(&request(Op::Flush, 0, u32::MAX)) && !readable(11, 1));
        assert!(faults.let_through(&request(Op::Discard, 0, 100)) && readable(0, 100));
    }

    #[test]
    fn a_disk_dies_after_so_many_requests_or_at_a_time() {
        let faults = Faults::none();
        assert!(faults.take(5) && !faults.dead(u64::MAX - 1));
        faults.die_after(2);
        assert!(faults.take(6) && faults.take(7) && !faults.dead(8));
        assert!(!faults.take(9) && faults.dead(9) && !faults.take(10));
        let faults = Faults::none();
        faults.die_at(100);
        assert!(faults.take(99) && !faults.take(100));
    }
}
