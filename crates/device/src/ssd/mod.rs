//! A solid-state disk without a translation layer: latencies, parallel channels, a link and a write cache.
//!
//! Models: command overhead; reads and programs that occupy a channel; requests split over channels by
//! stripe; one link shared in order of arrival; a write cache that drains to the channels, with or without
//! power-loss protection; the cost of a flush.
//! Does not model: mapping, cleaning, wear, reads delayed by erases, thermal limits, queue-pair arbitration.
//! A "channel" here is whatever works in parallel: a die of a real device rather than a bus.

mod params;

pub use params::SsdParams;

use std::collections::VecDeque;

use crate::due::{DueList, RESERVED};
use crate::{Completion, Device, Nanos, Op, Request, RequestId, SECTOR_BYTES};

/// The model. Every completion time is known at submit: nothing is reordered.
#[derive(Debug)]
pub struct Ssd {
    params: SsdParams,
    channel_free: Vec<Nanos>,
    link_free: Nanos,
    /// Writes that hold room in the cache: when each is programmed, and its sectors, in order of arrival.
    cached: VecDeque<(Nanos, u64)>,
    cached_sectors: u64,
    programmed: Nanos,
    due: DueList,
}

impl Ssd {
    /// An idle device with an empty cache.
    pub fn new(params: SsdParams) -> Self {
        Self {
            channel_free: vec![0; params.channels as usize],
            link_free: 0,
            cached: VecDeque::with_capacity(RESERVED),
            cached_sectors: 0,
            programmed: 0,
            due: DueList::new(),
            params,
        }
    }

    fn read(&mut self, now: Nanos, request: &Request) -> Nanos {
        let ready = self.occupy(
            now + self.params.read_overhead_ns,
            request,
            self.params.read_ns,
        );
        self.transfer(now, ready, request.sectors)
    }

    /// A write is done when it is in the cache, or, without one, when the channels have programmed it.
    fn write(&mut self, now: Nanos, request: &Request) -> Nanos {
        let sectors = u64::from(request.sectors);
        let room = self.make_room(now, sectors);
        let received = self.transfer(now, room + self.params.write_overhead_ns, request.sectors);
        let programmed = self.occupy(received, request, self.params.program_ns);
        self.programmed = self.programmed.max(programmed);
        if self.params.cache_sectors == 0 || (request.fua && !self.params.power_loss_protection) {
            return programmed;
        }
        self.cached.push_back((programmed, sectors));
        self.cached_sectors += sectors;
        received
    }

    /// The time at which the cache has room for `sectors`; at once if there is no cache.
    fn make_room(&mut self, now: Nanos, sectors: u64) -> Nanos {
        let mut at = now;
        while let Some(&(programmed, held)) = self.cached.front() {
            let full = self.cached_sectors + sectors > self.params.cache_sectors;
            if programmed > now && !full {
                break;
            }
            at = at.max(programmed);
            self.cached_sectors -= held;
            self.cached.pop_front();
        }
        at
    }

    fn flush(&self, now: Nanos) -> Nanos {
        let volatile = self.params.cache_sectors > 0 && !self.params.power_loss_protection;
        let durable = if volatile {
            now.max(self.programmed)
        } else {
            now
        };
        durable + self.params.flush_ns
    }

    /// Lets each channel that holds a part of the request work for its pages; returns when the last is done.
    fn occupy(&mut self, from: Nanos, request: &Request, page_ns: Nanos) -> Nanos {
        let stripe = self.params.stripe_sectors;
        let first = request.sector / stripe;
        let stripes = (request.sector + u64::from(request.sectors.max(1)) - 1) / stripe - first + 1;
        let channels = self.channel_free.len() as u64;
        let (each, extra) = (stripes / channels, stripes % channels);
        let mut done = from;
        for offset in 0..stripes.min(channels) {
            let free = &mut self.channel_free[((first + offset) % channels) as usize];
            let pages = each + u64::from(offset < extra);
            *free = from.max(*free) + pages * page_ns;
            done = done.max(*free);
        }
        done
    }

    /// When the link has moved `sectors` that are there at `ready`. The link keeps the order of arrival only
    /// in its total work, so that a slow read does not hold back what is ready before it.
    fn transfer(&mut self, now: Nanos, ready: Nanos, sectors: u32) -> Nanos {
        let duration = (f64::from(sectors) * self.params.sector_ns) as Nanos;
        self.link_free = now.max(self.link_free) + duration;
        self.link_free.max(ready + duration)
    }
}

impl Device for Ssd {
    fn submit(&mut self, now: Nanos, id: RequestId, request: Request) {
        let at = match request.op {
            Op::Read => self.read(now, &request),
            Op::Write => self.write(now, &request),
            Op::Flush => self.flush(now),
            Op::Discard => now + self.params.write_overhead_ns,
        };
        self.due.push(at, id);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.due.next()
    }

    fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        self.due.drain(now, completions);
    }

    fn capacity_sectors(&self) -> u64 {
        self.params.capacity_bytes / SECTOR_BYTES
    }
}
