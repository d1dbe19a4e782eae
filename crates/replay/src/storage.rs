//! Devices, where each role lies on them, and the requests under way.

use std::collections::VecDeque;

use tierwise_device::{Completion, Device, Nanos, Op, Request};
use tierwise_recording::Role;

use crate::layout::Layout;
use crate::{LivePath, RoleIo};

/// The longest request that the block layer passes on whole, in sectors: 1 MiB, as loop devices have it.
const LONGEST_SECTORS: u32 = 2048;
const SECTOR_BYTES: u64 = 512;

/// A request on its way.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    job: u32,
    role: Role,
    flush: bool,
    sent_at: Nanos,
}

/// What a role has asked, and what it waits for.
#[derive(Debug, Default)]
struct Traffic {
    reads: u64,
    writes: u64,
    flushes: u64,
    read_sectors: u64,
    written_sectors: u64,
    under_way: u32,
    busy_since: Nanos,
    busy_ns: u64,
    flushing: u32,
    held: VecDeque<(u32, Request)>,
}

struct Slot<'a> {
    device: Box<dyn Device + 'a>,
    next: Nanos,
}

/// The storage of a scenario.
pub(crate) struct Storage<'a> {
    slots: Vec<Slot<'a>>,
    layout: Layout,
    live: Option<LivePath>,
    requests: Vec<InFlight>,
    free: Vec<u32>,
    traffic: [Traffic; Role::ALL.len()],
    completions: Vec<Completion>,
}

impl<'a> Storage<'a> {
    pub(crate) fn new(
        devices: Vec<Box<dyn Device + 'a>>,
        layout: Layout,
        live: Option<LivePath>,
    ) -> Self {
        let slot = |device| Slot {
            device,
            next: Nanos::MAX,
        };
        Self {
            slots: devices.into_iter().map(slot).collect(),
            layout,
            live,
            requests: Vec::with_capacity(1024),
            free: Vec::with_capacity(1024),
            traffic: std::array::from_fn(|_| Traffic::default()),
            completions: Vec::with_capacity(1024),
        }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// When the next device has something to do.
    pub(crate) fn next(&self) -> Nanos {
        self.slots
            .iter()
            .map(|slot| slot.next)
            .min()
            .unwrap_or(Nanos::MAX)
    }

    /// Sends what a role asks, in as many requests as it takes; gives their number.
    pub(crate) fn send(
        &mut self,
        now: Nanos,
        job: u32,
        role: Role,
        op: Op,
        sector: u64,
        sectors: u32,
    ) -> u32 {
        let mut sent = 0;
        let mut left = sectors.max(1);
        let mut at = sector;
        while left > 0 {
            let (place, part) = self.layout.place(role, at, left.min(LONGEST_SECTORS));
            let request = Request {
                op,
                sector: place,
                sectors: part,
                fua: false,
            };
            self.submit(now, job, role, request);
            (left, at, sent) = (left - part, at + u64::from(part), sent + 1);
        }
        sent
    }

    /// Sends a write of the kernel's own accord, which may have to wait behind a flush; gives the number of requests.
    pub(crate) fn send_behind(
        &mut self,
        now: Nanos,
        job: u32,
        role: Role,
        sector: u64,
        sectors: u32,
    ) -> u32 {
        let serial = self.live.is_some_and(|live| live.serial_flush);
        if !serial || self.traffic[role as usize].flushing == 0 {
            return self.send(now, job, role, Op::Write, sector, sectors);
        }
        let (place, part) = self
            .layout
            .place(role, sector, sectors.min(LONGEST_SECTORS));
        let request = Request {
            op: Op::Write,
            sector: place,
            sectors: part,
            fua: false,
        };
        self.traffic[role as usize].held.push_back((job, request));
        1
    }

    /// Sends a flush of the device that holds a role.
    pub(crate) fn flush(&mut self, now: Nanos, job: u32, role: Role) -> u32 {
        let request = Request {
            op: Op::Flush,
            sector: 0,
            sectors: 0,
            fua: false,
        };
        self.submit(now, job, role, request);
        1
    }

    fn submit(&mut self, now: Nanos, job: u32, role: Role, request: Request) {
        self.count(now, role, &request);
        let in_flight = InFlight {
            job,
            role,
            flush: request.op == Op::Flush,
            sent_at: now,
        };
        let id = self.free.pop().unwrap_or(self.requests.len() as u32);
        if id as usize == self.requests.len() {
            self.requests.push(in_flight);
        } else {
            self.requests[id as usize] = in_flight;
        }
        let slot = &mut self.slots[self.layout.device(role)];
        slot.device.submit(now, u64::from(id), request);
        slot.next = slot.device.next_event().unwrap_or(Nanos::MAX);
    }

    fn count(&mut self, now: Nanos, role: Role, request: &Request) {
        let traffic = &mut self.traffic[role as usize];
        match request.op {
            Op::Read => {
                traffic.reads += 1;
                traffic.read_sectors += u64::from(request.sectors);
            }
            Op::Flush => {
                traffic.flushes += 1;
                traffic.flushing += 1;
            }
            Op::Write | Op::Discard => {
                traffic.writes += 1;
                traffic.written_sectors += u64::from(request.sectors);
            }
        }
        if traffic.under_way == 0 {
            traffic.busy_since = now;
        }
        traffic.under_way += 1;
    }

    /// Lets devices do what is due at `now`. Requests that are answered go to `answered`, by their job; those
    /// that are answered later, for the time of their path, to `later`.
    pub(crate) fn advance(
        &mut self,
        now: Nanos,
        answered: &mut Vec<u32>,
        later: &mut Vec<(Nanos, u32)>,
    ) {
        let mut completions = std::mem::take(&mut self.completions);
        for slot in self.slots.iter_mut().filter(|slot| slot.next <= now) {
            slot.device.advance(now, &mut completions);
            slot.next = slot.device.next_event().unwrap_or(Nanos::MAX);
        }
        let path_ns = self.live.map_or(0, |live| live.path_ns);
        for completion in completions.drain(..) {
            let id = completion.id as u32;
            let earliest = self.requests[id as usize].sent_at + path_ns;
            if earliest > now {
                later.push((earliest, id));
            } else {
                answered.push(self.answer(now, id));
            }
        }
        self.completions = completions;
    }

    /// A request is answered; gives its job.
    pub(crate) fn answer(&mut self, now: Nanos, id: u32) -> u32 {
        let request = self.requests[id as usize];
        self.free.push(id);
        let traffic = &mut self.traffic[request.role as usize];
        traffic.under_way -= 1;
        if traffic.under_way == 0 {
            traffic.busy_ns += now - traffic.busy_since;
        }
        if request.flush {
            traffic.flushing -= 1;
            self.release_held(now, request.role);
        }
        request.job
    }

    fn release_held(&mut self, now: Nanos, role: Role) {
        while self.traffic[role as usize].flushing == 0 {
            let Some((job, request)) = self.traffic[role as usize].held.pop_front() else {
                return;
            };
            self.submit(now, job, role, request);
        }
    }

    /// Forgets what was asked until `now`.
    pub(crate) fn begin(&mut self, now: Nanos) {
        for traffic in &mut self.traffic {
            (traffic.reads, traffic.writes, traffic.flushes) = (0, 0, 0);
            (traffic.read_sectors, traffic.written_sectors) = (0, 0);
            (traffic.busy_ns, traffic.busy_since) = (0, now);
        }
    }

    /// What each role asked.
    pub(crate) fn io(&self, now: Nanos) -> Vec<RoleIo> {
        let roles = Role::ALL.iter().zip(&self.traffic);
        let used =
            roles.filter(|(_, traffic)| traffic.reads + traffic.writes + traffic.flushes > 0);
        used.map(|(role, traffic)| RoleIo {
            role: *role,
            reads: traffic.reads,
            writes: traffic.writes,
            flushes: traffic.flushes,
            read_bytes: traffic.read_sectors * SECTOR_BYTES,
            written_bytes: traffic.written_sectors * SECTOR_BYTES,
            busy_s: traffic.busy_until(now) as f64 / 1e9,
        })
        .collect()
    }
}

impl Traffic {
    fn busy_until(&self, now: Nanos) -> u64 {
        let rest = if self.under_way > 0 {
            now - self.busy_since
        } else {
            0
        };
        self.busy_ns + rest
    }
}
