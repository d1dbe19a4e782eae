//! A solid-state disk: flash dies behind channels, a translation layer with cleaning, caches and a link.
//!
//! Models: command handling; dies that read, program and erase, with page types and planes; channels and a link
//! shared in order of arrival; a page map with greedy cleaning and spare space; fast flash with one bit a cell;
//! a write cache with or without power-loss protection; flushes; discards; wear.
//! Does not model: where a unit really lies (reads go by address), wear levelling, reads that hit the write
//! cache, cleaning while idle, thermal limits, failing flash, queue-pair arbitration.

mod dies;
mod ftl;
mod params;
mod write_stream;

use dies::{FlashDies, SsdWriteBuffer};
use write_stream::SsdWriteStream;

use crate::virtual_time_driver::{EventQueue, LatestTime};
use crate::{
    Completion, Device, Nanos, Op, Precondition, Request, RequestId, SECTOR_BYTES, WrittenSectors,
};

pub use ftl::{CleaningParams, uniform_write_amplification};
pub use params::{SlcParams, SsdParams, WornMap};

/// The model. Every completion time is known at submit: nothing is reordered.
#[derive(Debug)]
pub struct Ssd {
    params: SsdParams,
    dies: FlashDies,
    buffer: SsdWriteBuffer,
    /// The translation layer; without one, writes go to the place that their address gives.
    log: Option<SsdWriteStream>,
    controller_free: Nanos,
    link_free: Nanos,
    last_completion: Nanos,
    /// Whether the cache took a write since the last flush.
    dirty: bool,
    host_sectors: u64,
    time: LatestTime,
    due: EventQueue,
}

impl Ssd {
    /// An idle, empty device. The parameters must be those of a profile, which were checked.
    pub fn new(params: SsdParams) -> Self {
        let log = |cleaning| SsdWriteStream::new(&params, cleaning);
        Self {
            dies: FlashDies::new(&params),
            buffer: SsdWriteBuffer::new(params.cache_sectors),
            log: params.cleaning.as_ref().map(log),
            controller_free: 0,
            link_free: 0,
            last_completion: 0,
            dirty: false,
            host_sectors: 0,
            time: LatestTime::default(),
            due: EventQueue::new(),
            params,
        }
    }

    /// Share of valid units of each erase block that is full, in no order; nothing without a translation layer.
    pub fn valid_shares(&self) -> impl Iterator<Item = f64> {
        self.log.iter().flat_map(SsdWriteStream::valid_shares)
    }

    /// When the controller has taken in a command that arrives at `now`.
    fn accept(&mut self, now: Nanos, command_ns: Nanos) -> Nanos {
        self.controller_free = now.max(self.controller_free) + command_ns;
        self.controller_free
    }

    fn read(&mut self, now: Nanos, request: &Request) -> Nanos {
        let at = self.accept(now, self.params.command_ns) + self.params.read_overhead_ns;
        let ready = self.dies.read(at, request);
        self.transfer(now, ready, request.sectors, self.params.sector_ns)
    }

    /// A write is done when it is in the cache, or, without one, when the dies have programmed it.
    fn write(&mut self, now: Nanos, request: &Request) -> Nanos {
        let accepted = self.accept(now, self.params.write_command_ns);
        let room = self.buffer.make_room(accepted, u64::from(request.sectors));
        let ready = room + self.params.write_overhead_ns;
        let received = self.transfer(now, ready, request.sectors, self.params.write_sector_ns);
        self.host_sectors += u64::from(request.sectors);
        self.dirty = true;
        let mut done = self.program(received, request);
        if self.params.cache_sectors > 0 && (!request.fua || self.params.power_loss_protection) {
            return received;
        }
        if let Some(log) = &mut self.log {
            done = done.max(log.close_page(received, &mut self.dies, &mut self.buffer));
        }
        done
    }

    fn program(&mut self, at: Nanos, request: &Request) -> Nanos {
        if let Some(log) = &mut self.log {
            return log.append(at, request, &mut self.dies, &mut self.buffer);
        }
        let done = self.dies.program_in_place(at, request);
        self.buffer.gather(u64::from(request.sectors));
        self.buffer.leave(u64::from(request.sectors), done);
        done
    }

    fn flush(&mut self, now: Nanos) -> Nanos {
        let accepted = self.accept(now, self.params.command_ns);
        let mut durable = accepted;
        if !self.params.flush_queued {
            durable = durable.max(self.last_completion);
        }
        if self.params.cache_sectors > 0 && !self.params.power_loss_protection && self.dirty {
            if let Some(log) = &mut self.log {
                log.close_page(now, &mut self.dies, &mut self.buffer);
            }
            durable = durable.max(self.buffer.programmed()) + self.params.journal_ns;
        }
        self.dirty = false;
        let done = durable + self.params.flush_ns;
        if !self.params.flush_queued {
            self.controller_free = done;
        }
        done
    }

    fn discard(&mut self, now: Nanos, request: &Request) -> Nanos {
        if let Some(log) = &mut self.log {
            log.discard(request);
        }
        self.accept(now, self.params.write_command_ns) + self.params.write_overhead_ns
    }

    /// A read or write of no sectors: the handling of a command, nothing on the dies or the link.
    fn serve_nothing(&mut self, now: Nanos, op: Op) -> Nanos {
        if op == Op::Read {
            self.accept(now, self.params.command_ns) + self.params.read_overhead_ns
        } else {
            self.accept(now, self.params.write_command_ns) + self.params.write_overhead_ns
        }
    }

    /// When the link has moved `sectors` that are there at `ready`. Order of arrival applies only to the
    /// link's total work, so a slow read does not hold back data that is ready before it.
    fn transfer(&mut self, now: Nanos, ready: Nanos, sectors: u32, sector_ns: f64) -> Nanos {
        let duration = (f64::from(sectors) * sector_ns) as Nanos;
        self.link_free = now.max(self.link_free) + duration;
        self.link_free.max(ready + duration)
    }

    /// Lets the device use the time since its last work.
    fn use_idle_time(&mut self, now: Nanos) {
        let busy_until = self.last_completion.max(self.buffer.programmed());
        if let Some(log) = &mut self.log
            && now > busy_until
        {
            log.idle(now - busy_until, &self.dies);
        }
    }
}

impl Device for Ssd {
    fn submit(&mut self, now: Nanos, id: RequestId, request: Request) {
        let now = self.time.to(now);
        let request = request.fitted(self.capacity_sectors());
        self.use_idle_time(now);
        let at = match request.op {
            Op::Read | Op::Write if request.sectors == 0 => self.serve_nothing(now, request.op),
            Op::Read => self.read(now, &request),
            Op::Write => self.write(now, &request),
            Op::Flush => self.flush(now),
            Op::Discard => self.discard(now, &request),
        };
        self.last_completion = self.last_completion.max(at);
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
        if let Some(log) = &mut self.log {
            log.precondition(&self.params, state);
        }
    }

    fn preload(&mut self, request: &Request) {
        let request = request.fitted(self.capacity_sectors());
        if let Some(log) = &mut self.log
            && request.sectors > 0
        {
            match request.op {
                Op::Write => log.preload(&request),
                Op::Discard => log.discard(&request),
                Op::Read | Op::Flush => {}
            }
        }
    }

    fn written(&self) -> WrittenSectors {
        self.log.as_ref().map_or(
            WrittenSectors {
                host_sectors: self.host_sectors,
                medium_sectors: self.host_sectors,
                erases: 0,
            },
            |log| log.written(self.host_sectors),
        )
    }
}
