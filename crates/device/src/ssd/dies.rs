//! Dies and the channels they share: until when each is busy.
//!
//! Packages with dies and planes behind shared buses after Agrawal et al., "Design tradeoffs for SSD performance",
//! USENIX 2008.
//!
//! Reads go before queued programs and erases, but not before the running one, unless the die can suspend it.
//! The delayed work is done later by the duration of the read.

use std::collections::VecDeque;
use std::ops::Range;

use super::params::SsdParams;
use crate::{Nanos, Request};

/// A die. What is queued runs without gaps from `busy_from` to `busy_until`.
#[derive(Clone, Debug, Default)]
struct FlashDie {
    read_until: Nanos,
    busy_from: Nanos,
    busy_until: Nanos,
    erase: Range<Nanos>,
    erases_seen: u64,
}

impl FlashDie {
    fn queue(&mut self, at: Nanos, duration: Nanos) -> Nanos {
        let from = at.max(self.busy_until).max(self.read_until);
        if from > self.busy_until {
            self.busy_from = from;
        }
        self.busy_until = from + duration;
        self.busy_until
    }

    /// Reads for `duration` ahead of the queued work, each step of which takes `step`.
    fn read(&mut self, at: Nanos, duration: Nanos, step: Nanos, suspend: Option<Nanos>) -> Nanos {
        let ready = at.max(self.read_until);
        let rest = self.rest_of_step(ready, step);
        let wait = suspend.map_or(rest, |suspend| rest.min(suspend));
        let from = ready + wait;
        self.read_until = from + duration;
        if self.busy_until > from {
            self.postpone(
                from,
                self.read_until.saturating_sub(self.busy_from).min(duration),
            );
        }
        self.read_until
    }

    /// Time until the program or erase that runs at `at` ends.
    fn rest_of_step(&self, at: Nanos, step: Nanos) -> Nanos {
        if at < self.busy_from || at >= self.busy_until {
            0
        } else if self.erase.contains(&at) {
            self.erase.end - at
        } else {
            (self.busy_until - at).checked_rem(step).unwrap_or(0)
        }
    }

    fn postpone(&mut self, from: Nanos, by: Nanos) {
        self.busy_until += by;
        if self.erase.end > from {
            self.erase.end += by;
            if self.erase.start >= from {
                self.erase.start += by;
            }
        }
    }
}

/// All dies of a device.
#[derive(Debug)]
pub(super) struct FlashDies {
    dies: Vec<FlashDie>,
    channel_free: Vec<Nanos>,
    read_ns: Vec<Nanos>,
    program_ns: Vec<Nanos>,
    /// Mean time of a program, which a read may find running.
    step_ns: Nanos,
    suspend_ns: Option<Nanos>,
    sector_ns: f64,
    stripe_sectors: u64,
}

impl FlashDies {
    pub(super) fn new(params: &SsdParams) -> Self {
        let stripe_sectors = params.die_stripe_sectors();
        let bus_ns = (stripe_sectors as f64 * params.channel_sector_ns) as Nanos;
        let shared_ns = bus_ns * u64::from(params.dies_per_channel);
        let with_bus = |&program: &Nanos| (program + bus_ns).max(shared_ns);
        let program_ns: Vec<Nanos> = params.program_ns.iter().map(with_bus).collect();
        Self {
            dies: vec![FlashDie::default(); params.dies() as usize],
            channel_free: vec![0; params.channels as usize],
            read_ns: params.read_ns.clone(),
            step_ns: mean(&program_ns),
            program_ns,
            suspend_ns: params.suspend_ns,
            sector_ns: params.channel_sector_ns,
            stripe_sectors,
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.dies.len() as u64
    }

    /// Mean time of a page's read.
    pub(super) fn mean_read_ns(&self) -> Nanos {
        mean(&self.read_ns)
    }

    /// Mean time of a program, with the transfer to the die.
    pub(super) fn mean_program_ns(&self) -> Nanos {
        self.step_ns
    }

    /// Time of the program of the page in row `row` of a block.
    pub(super) fn program_ns(&self, row: u64) -> Nanos {
        self.program_ns[(row % self.program_ns.len() as u64) as usize]
    }

    /// Queues `duration` of programs at a die; returns when they end.
    pub(super) fn program(&mut self, die: u64, at: Nanos, duration: Nanos) -> Nanos {
        self.dies[die as usize].queue(at, duration)
    }

    /// Queues an erase at a die if `erases` have been asked for and it has not seen the last of them.
    pub(super) fn erase(&mut self, die: u64, at: Nanos, erases: u64, duration: Nanos) {
        let die = &mut self.dies[die as usize];
        if die.erases_seen != erases {
            die.erases_seen = erases;
            let until = die.queue(at, duration);
            die.erase = until - duration..until;
        }
    }

    /// Programs in place the stripes that a request touches; returns when the last is done.
    pub(super) fn program_in_place(&mut self, at: Nanos, request: &Request) -> Nanos {
        let mut done = at;
        for stripe in stripes_of_request(request, self.stripe_sectors) {
            let (die, row) = (stripe % self.count(), stripe / self.count());
            done = done.max(self.program(die, at, self.program_ns(row)));
        }
        done
    }

    /// Reads the stripes of a request; returns when the last of it has crossed its channel.
    pub(super) fn read(&mut self, at: Nanos, request: &Request) -> Nanos {
        let mut done = at;
        let end = request.sector + u64::from(request.sectors);
        for stripe in stripes_of_request(request, self.stripe_sectors) {
            let (die, row) = (stripe % self.count(), stripe / self.count());
            let read_ns = self.read_ns[(row % self.read_ns.len() as u64) as usize];
            let (step, suspend) = (self.step_ns, self.suspend_ns);
            let sensed = self.dies[die as usize].read(at, read_ns, step, suspend);
            let from = request.sector.max(stripe * self.stripe_sectors);
            let sectors = end
                .min((stripe + 1) * self.stripe_sectors)
                .saturating_sub(from);
            done = done.max(self.transfer(die, at + read_ns, sensed, sectors));
        }
        done
    }

    /// When the die's channel has moved `sectors` that are there at `ready`, and no earlier than `least`. The
    /// order of arrival holds for its total work only: a slow read does not delay data that is ready before
    /// it.
    fn transfer(&mut self, die: u64, least: Nanos, ready: Nanos, sectors: u64) -> Nanos {
        let channel = (die % self.channel_free.len() as u64) as usize;
        let duration = (sectors as f64 * self.sector_ns) as Nanos;
        let free = &mut self.channel_free[channel];
        *free = least.max(*free) + duration;
        (*free).max(ready + duration)
    }
}

/// The stripes that a request touches, at least one.
fn stripes_of_request(request: &Request, stripe_sectors: u64) -> Range<u64> {
    let end = request.sector + u64::from(request.sectors.max(1));
    request.sector / stripe_sectors..end.div_ceil(stripe_sectors)
}

fn mean(times: &[Nanos]) -> Nanos {
    times.iter().sum::<Nanos>() / times.len() as u64
}

// Space in the write cache: sectors that came in and are not on the flash yet.

/// Entries reserved at the start; a larger cache grows as needed in the first requests.
const RESERVED: usize = 4096;

/// The write cache by number of sectors; it holds no data.
#[derive(Debug)]
pub(super) struct SsdWriteBuffer {
    capacity_sectors: u64,
    held_sectors: u64,
    /// When each part is on the flash, and its sectors, in order of arrival.
    leaving: VecDeque<(Nanos, u64)>,
    programmed: Nanos,
}

impl SsdWriteBuffer {
    pub(super) fn new(capacity_sectors: u64) -> Self {
        Self {
            capacity_sectors,
            held_sectors: 0,
            leaving: VecDeque::with_capacity(RESERVED),
            programmed: 0,
        }
    }

    /// The time at which `sectors` fit; at once if there is no cache.
    pub(super) fn make_room(&mut self, now: Nanos, sectors: u64) -> Nanos {
        let mut at = now;
        while let Some(&(programmed, held)) = self.leaving.front() {
            let full = self.held_sectors + sectors > self.capacity_sectors;
            if programmed > now && !full {
                break;
            }
            at = at.max(programmed);
            self.held_sectors -= held;
            self.leaving.pop_front();
        }
        at
    }

    /// Holds `sectors` that wait for their page to fill.
    pub(super) fn gather(&mut self, sectors: u64) {
        self.held_sectors += sectors;
    }

    /// Lets `sectors`, gathered before, leave when they are programmed.
    pub(super) fn leave(&mut self, sectors: u64, programmed: Nanos) {
        self.programmed = self.programmed.max(programmed);
        if self.capacity_sectors == 0 {
            self.held_sectors -= sectors;
        } else {
            self.leaving.push_back((programmed, sectors));
        }
    }

    /// When every queued program is done.
    pub(super) fn programmed(&self) -> Nanos {
        self.programmed
    }
}
