//! Injected faults of a disk: it dies at some moment, or cannot read some sectors.

use std::ops::RangeInclusive;

use tierwise_device::{Nanos, Op, Request};

/// Faults of one disk.
pub(crate) struct Faults {
    dies_at: Nanos,
    /// Requests that it takes before it dies.
    requests_left: Option<u64>,
    unreadable: Vec<RangeInclusive<u64>>,
}

impl Faults {
    pub fn none() -> Self {
        Self {
            dies_at: Nanos::MAX,
            requests_left: None,
            unreadable: Vec::new(),
        }
    }

    /// From this time on every request fails.
    pub fn die_at(&mut self, time: Nanos) {
        self.dies_at = time;
    }

    /// After this number of further requests every request fails.
    pub fn die_after(&mut self, requests: u64) {
        self.requests_left = Some(requests);
    }

    pub fn dead(&self, now: Nanos) -> bool {
        now >= self.dies_at
    }

    /// Counts a request that arrives; returns whether the disk is still alive to take it.
    pub fn take(&mut self, now: Nanos) -> bool {
        if let Some(left) = &mut self.requests_left {
            if *left == 0 {
                self.dies_at = self.dies_at.min(now);
            }
            *left = left.saturating_sub(1);
        }
        !self.dead(now)
    }

    /// Reads of these sectors fail until something is written there.
    pub fn make_unreadable(&mut self, sectors: RangeInclusive<u64>) {
        self.unreadable.push(sectors);
    }

    /// Whether a completed request succeeds. One that replaces sectors makes them readable: a real disk then
    /// puts good sectors in their place.
    pub fn let_through(&mut self, request: &Request) -> bool {
        if request.op == Op::Flush || self.unreadable.is_empty() {
            return true;
        }
        let (first, end) = (request.sector, request.sector + u64::from(request.sectors));
        if request.op == Op::Read {
            let mut unreadable = self.unreadable.iter();
            return !unreadable.any(|range| *range.start() < end && *range.end() >= first);
        }
        self.unreadable = self
            .unreadable
            .drain(..)
            .flat_map(|range| remainder(range, first, end))
            .collect();
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
        let mut faults = Faults::none();
        faults.make_unreadable(10..=19);
        let readable = |faults: &mut Faults, sector, sectors| {
            faults.let_through(&request(Op::Read, sector, sectors))
        };
        assert!(readable(&mut faults, 0, 10) && readable(&mut faults, 20, 8));
        assert!(!readable(&mut faults, 9, 2) && !readable(&mut faults, 19, 1));
        assert!(!readable(&mut faults, 0, 100));
        assert!(faults.let_through(&request(Op::Write, 12, 3)) && readable(&mut faults, 12, 3));
        assert!(!readable(&mut faults, 11, 1) && !readable(&mut faults, 15, 1));
        assert!(faults.let_through(&request(Op::Flush, 0, u32::MAX)));
        assert!(!readable(&mut faults, 11, 1));
        assert!(faults.let_through(&request(Op::Discard, 0, 100)) && readable(&mut faults, 0, 100));
    }

    #[test]
    fn a_disk_dies_after_so_many_requests_or_at_a_time() {
        let mut faults = Faults::none();
        assert!(faults.take(5) && !faults.dead(u64::MAX - 1));
        faults.die_after(2);
        assert!(faults.take(6) && faults.take(7) && !faults.dead(8));
        assert!(!faults.take(9) && faults.dead(9) && !faults.take(10));
        let mut faults = Faults::none();
        faults.die_at(100);
        assert!(faults.take(99) && !faults.take(100));
    }
}
