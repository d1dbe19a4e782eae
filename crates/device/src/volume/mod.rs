//! A volume of a cloud: latency over a network, and limits that the provider sets.
//!
//! Models: latency drawn from a log-normal distribution; limits of I/Os and of throughput as token buckets;
//! credits for throughput above a baseline; splitting and merging of requests as the provider counts them;
//! limits that follow the size; requests served at the same time. A write is durable when it is reported.
//! Does not model: other tenants; latency that grows near the limits other than by waiting; first reads of a volume
//! made from a snapshot; resizing. Limits of the machine that volumes are attached to are apart: [`InstanceGate`].

mod instance;
mod params;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use instance::TokenBucket;
use params::LogNormalLatency;

use crate::random::SplitMix;
use crate::virtual_time_driver::{EventQueue, LatestTime};
use crate::{
    Completion, Device, Nanos, Op, Precondition, Request, RequestId, SECTOR_BYTES, WrittenSectors,
};

pub use instance::{InstanceBurst, InstanceGate, InstanceLimits};
pub use params::{CreditParams, IoSizeParams, LatencyParams, VolumeParams};

/// The model. Every completion time is known at submit; requests complete out of order because latency varies.
#[derive(Debug)]
pub struct CloudVolume {
    params: VolumeParams,
    read: LogNormalLatency,
    write: LogNormalLatency,
    random: SplitMix,
    io: TokenBucket,
    throughput: TokenBucket,
    credits: Option<TokenBucket>,
    /// Whether the credits are to be spent when the first request comes.
    spend_credits: bool,
    slots: Option<RequestSlots>,
    /// The last read and the last write.
    runs: [SequentialRun; 2],
    written_sectors: u64,
    time: LatestTime,
    due: EventQueue,
}

impl CloudVolume {
    /// An idle volume with all its credits. The seed sets the order of the latencies.
    pub(crate) fn new(params: VolumeParams, seed: u64) -> Self {
        let window_s = params.window_ns as f64 / 1e9;
        let steady = |per_s: f64| TokenBucket::new(per_s, per_s * window_s);
        Self {
            read: LogNormalLatency::new(&params.read),
            write: LogNormalLatency::new(&params.write),
            random: SplitMix::new(seed),
            io: steady(params.iops),
            throughput: steady(params.sectors_per_s()),
            credits: params
                .credits
                .as_ref()
                .map(|credits| TokenBucket::new(credits.sectors_per_s(), credits.most_sectors())),
            spend_credits: false,
            slots: params.queue_depth.map(RequestSlots::new),
            runs: [SequentialRun::default(); 2],
            written_sectors: 0,
            time: LatestTime::default(),
            due: EventQueue::new(),
            params,
        }
    }

    /// When a read or write completes.
    fn transfer(&mut self, now: Nanos, request: &Request) -> Nanos {
        let is_write = request.op == Op::Write;
        let random = self.random.draw();
        let count = self.runs[usize::from(is_write)].count(&self.params.count, now, request);
        let begun = self.begin(now, count, request.sectors);
        let latency = if is_write { &self.write } else { &self.read };
        let moving_ns = (f64::from(request.sectors) * self.params.sector_ns) as Nanos;
        let at = begun + latency.draw(random) + moving_ns;
        self.runs[usize::from(is_write)].completes(&self.params.count, at);
        if let Some(slots) = &mut self.slots {
            slots.hold(at);
        }
        if is_write {
            self.written_sectors += u64::from(request.sectors);
        }
        at
    }

    /// Charges the limits for `count` I/Os with `sectors`, as soon as every limit allows it. In order of
    /// arrival, because a limit that held one request back lets none pass before it.
    fn begin(&mut self, now: Nanos, count: u64, sectors: u32) -> Nanos {
        let sectors = if self.params.count.whole_units {
            count * self.params.count.unit_sectors
        } else {
            u64::from(sectors)
        };
        let mut at = now
            .max(self.io.ready_at(count))
            .max(self.throughput.ready_at(sectors));
        if let Some(slots) = &self.slots {
            at = at.max(slots.ready_at());
        }
        if let Some(credits) = &mut self.credits {
            at = at.max(credits.ready_at(sectors));
            credits.take(at, sectors);
        }
        self.io.take(at, count);
        self.throughput.take(at, sectors);
        at
    }
}

impl Device for CloudVolume {
    fn submit(&mut self, now: Nanos, id: RequestId, request: Request) {
        let now = self.time.to(now);
        let request = request.fitted(self.capacity_sectors());
        if self.spend_credits {
            self.spend_credits = false;
            self.credits
                .iter_mut()
                .for_each(|credits| credits.empty(now));
        }
        let at = match request.op {
            Op::Read | Op::Write => self.transfer(now, &request),
            Op::Flush | Op::Discard => now + self.params.flush_ns,
        };
        self.due.push(at, id);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.due.next()
    }

    fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        self.due.drain(self.time.to(now), completions);
    }

    fn capacity_sectors(&self) -> u64 {
        self.params.capacity_bytes / SECTOR_BYTES
    }

    fn precondition(&mut self, state: Precondition) {
        self.spend_credits = matches!(state, Precondition::Random { .. });
    }

    fn written(&self) -> WrittenSectors {
        WrittenSectors {
            host_sectors: self.written_sectors,
            medium_sectors: self.written_sectors,
            erases: 0,
        }
    }
}

// How I/Os are counted: large requests are split, requests in sequence are merged.

/// The latest requests in sequence of one kind, reads or writes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SequentialRun {
    next_sector: u64,
    /// Sectors in the last I/O counted; it can take up more if it is not 0.
    filled_sectors: u64,
    /// Latest arrival that can still be merged.
    open_until: Nanos,
}

impl SequentialRun {
    /// I/Os that `request`, arriving at `now`, adds to those counted.
    #[inline]
    pub(super) fn count(&mut self, params: &IoSizeParams, now: Nanos, request: &Request) -> u64 {
        if params.unit_sectors == 0 {
            return 1;
        }
        let follows = params.merge_window_ns.is_some()
            && request.sector == self.next_sector
            && now <= self.open_until;
        let begun = if follows { self.filled_sectors } else { 0 };
        let filled = begun + u64::from(request.sectors.max(1));
        self.filled_sectors = filled % params.unit_sectors;
        self.next_sector = request.sector + u64::from(request.sectors);
        filled.div_ceil(params.unit_sectors) - u64::from(begun > 0)
    }

    /// Notes when the request just counted completes.
    #[inline]
    pub(super) fn completes(&mut self, params: &IoSizeParams, at: Nanos) {
        self.open_until = at + params.merge_window_ns.unwrap_or(0);
    }
}

// Requests that a volume works on at the same time.

/// A fixed number of slots, each held by a request until it completes.
#[derive(Debug)]
pub(super) struct RequestSlots {
    depth: usize,
    /// When each slot in use becomes free, earliest first.
    free_at: BinaryHeap<Reverse<Nanos>>,
}

impl RequestSlots {
    pub(super) fn new(depth: u32) -> Self {
        Self {
            depth: depth as usize,
            free_at: BinaryHeap::with_capacity(depth as usize),
        }
    }

    /// When the next slot is free; 0 if one never was used.
    pub(super) fn ready_at(&self) -> Nanos {
        match self.free_at.peek() {
            Some(Reverse(free_at)) if self.free_at.len() == self.depth => *free_at,
            _ => 0,
        }
    }

    /// Holds the slot that is free first until `until`.
    pub(super) fn hold(&mut self, until: Nanos) {
        if self.free_at.len() < self.depth {
            self.free_at.push(Reverse(until));
        } else if let Some(mut earliest) = self.free_at.peek_mut() {
            *earliest = Reverse(until);
        }
    }
}
