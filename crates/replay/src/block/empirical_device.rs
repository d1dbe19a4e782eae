//! A device without a profile: each request takes the time of a random recorded one of its kind and size.
//!
//! Source: the recording's block requests. Models concurrency: as many requests at a time as were observed under way;
//! others wait. Not modelled: why a request was slow; neither place nor order matters, and two roles on one device do
//! not slow each other down.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tierwise_device::random::SplitMix;
use tierwise_device::{Completion, Device, Nanos, Op, Request, RequestId};
use tierwise_work::RecordedDevice;

/// Requests of this part of a size to its inverse are of the same kind.
const SIMILAR_SIZE: f64 = 0.6;
/// Time of a request of a kind never observed.
const UNOBSERVED_NS: Nanos = 100_000;

/// The model.
#[derive(Debug)]
pub(crate) struct EmpiricalDevice<'a> {
    reads: &'a [(u32, u64)],
    writes: &'a [(u32, u64)],
    flushes: &'a [u64],
    free_at: BinaryHeap<Reverse<Nanos>>,
    due: BinaryHeap<Reverse<(Nanos, RequestId)>>,
    random: SplitMix,
}

impl<'a> EmpiricalDevice<'a> {
    /// The device's times must be sorted by size.
    pub(crate) fn new(device: &'a RecordedDevice, seed: u64) -> Self {
        let [reads, writes] = [&device.reads, &device.writes];
        let either = |own: &'a [_], other: &'a [_]| if own.is_empty() { other } else { own };
        Self {
            reads: either(reads, writes),
            writes: either(writes, reads),
            flushes: &device.flushes,
            free_at: (0..device.depth.max(1)).map(|_| Reverse(0)).collect(),
            due: BinaryHeap::with_capacity(1024),
            random: SplitMix::new(seed),
        }
    }

    fn service_ns(&mut self, request: &Request) -> Nanos {
        let times = match request.op {
            Op::Read => self.reads,
            Op::Write | Op::Discard => self.writes,
            Op::Flush if self.flushes.is_empty() => return 0,
            Op::Flush => return self.flushes[self.random.below(self.flushes.len())],
        };
        let similar = similar(times, request.sectors);
        if similar.is_empty() {
            return UNOBSERVED_NS;
        }
        let (sectors, ns) = similar[self.random.below(similar.len())];
        let longer = f64::from(request.sectors) / f64::from(sectors.max(1));
        (ns as f64
            * if longer > 1.0 / SIMILAR_SIZE {
                longer
            } else {
                1.0
            }) as Nanos
    }
}

/// Times of requests of a similar size, else of the nearest size.
fn similar(times: &[(u32, u64)], sectors: u32) -> &[(u32, u64)] {
    let at = |size: f64| times.partition_point(|time| f64::from(time.0) < size);
    let size = f64::from(sectors);
    let (from, to) = (at(size * SIMILAR_SIZE), at(size / SIMILAR_SIZE));
    if from < to {
        return &times[from..to];
    }
    let nearest = times.get(from).or(times.last()).map(|time| time.0);
    nearest.map_or(&[], |sectors| {
        let near = at(f64::from(sectors))..times.partition_point(|time| time.0 <= sectors);
        &times[near]
    })
}

impl Device for EmpiricalDevice<'_> {
    fn submit(&mut self, now: Nanos, id: RequestId, request: Request) {
        let Reverse(free_at) = self.free_at.pop().expect("there is at least one place");
        let done_at = free_at.max(now) + self.service_ns(&request);
        self.free_at.push(Reverse(done_at));
        self.due.push(Reverse((done_at, id)));
    }

    fn next_event(&self) -> Option<Nanos> {
        self.due.peek().map(|next| next.0.0)
    }

    fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        while self.next_event().is_some_and(|at| at <= now) {
            if let Some(Reverse((at, id))) = self.due.pop() {
                completions.push(Completion { id, at });
            }
        }
    }

    fn capacity_sectors(&self) -> u64 {
        u64::MAX / 2
    }
}
