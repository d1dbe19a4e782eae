//! Devices, where each role lies on them, and the requests under way.

use std::collections::VecDeque;

use tierwise_device::{Completion, Device, Nanos, Op, Request};
use tierwise_recording::Role;

use crate::layout::Layout;
use crate::throttle::Throttle;
use crate::toll::Toll;
use crate::traffic::Traffic;
use crate::{LivePath, RoleIo};

/// The longest request that the block layer passes on whole, in sectors: 1 MiB, as loop devices have it.
pub(crate) const LONGEST_SECTORS: u32 = 2048;

/// A request on its way.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    job: u32,
    role: Role,
    op: Op,
    sent_at: Nanos,
    /// How late it came to the device for want of a core; none as long as it has not.
    late_ns: Option<Nanos>,
    /// When the device was done with a request that had not come to it.
    done_at: Option<Nanos>,
}

struct Slot<'a> {
    device: Box<dyn Device + 'a>,
    next: Nanos,
    toll: Toll,
}

/// The storage of a scenario.
pub(crate) struct Storage<'a> {
    slots: Vec<Slot<'a>>,
    layout: Layout,
    live: Option<LivePath>,
    requests: Vec<InFlight>,
    free: Vec<u32>,
    traffic: [Traffic; Role::ALL.len()],
    /// Of each role: writes that wait behind a flush.
    held: [VecDeque<(u32, Request)>; Role::ALL.len()],
    completions: Vec<Completion>,
    /// Requests whose sending costs time on a core that nobody has given yet, and how much.
    unpaid: VecDeque<(Paid, Nanos)>,
    /// Time that servers of emulated disks spun and that no core has given yet.
    spun_ns: Nanos,
}

/// What it means to a request that storage's threads had a core for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paid {
    /// Nothing: it was under way.
    Nothing,
    /// It comes to its device.
    Comes(u32),
}

impl<'a> Storage<'a> {
    pub(crate) fn new(
        devices: Vec<(Box<dyn Device + 'a>, Toll)>,
        layout: Layout,
        live: Option<LivePath>,
    ) -> Self {
        let slot = |(device, toll)| Slot {
            device,
            next: Nanos::MAX,
            toll,
        };
        Self {
            slots: devices.into_iter().map(slot).collect(),
            layout,
            live,
            requests: Vec::with_capacity(1024),
            free: Vec::with_capacity(1024),
            traffic: std::array::from_fn(|_| Traffic::default()),
            held: std::array::from_fn(|_| VecDeque::new()),
            completions: Vec::with_capacity(1024),
            unpaid: VecDeque::new(),
            spun_ns: 0,
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
        if !serial || !self.traffic[role as usize].is_flushing() {
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
        self.held[role as usize].push_back((job, request));
        1
    }

    /// How many writes of a role that nobody waits for at once may be under way.
    pub(crate) fn throttle(&mut self, role: Role) -> &mut Throttle {
        self.traffic[role as usize].throttle()
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
        self.traffic[role as usize].sent(now, &request);
        let id = self.free.pop().unwrap_or(self.requests.len() as u32);
        let slot = &mut self.slots[self.layout.device(role)];
        slot.device.submit(now, u64::from(id), request);
        slot.next = slot.device.next_event().unwrap_or(Nanos::MAX);
        let cost_ns = slot.toll.request_ns(now, request.sectors);
        let waits = slot.toll.delays && cost_ns > 0;
        if cost_ns > 0 {
            let paid = if waits {
                Paid::Comes(id)
            } else {
                Paid::Nothing
            };
            self.unpaid.push_back((paid, cost_ns));
        }
        let in_flight = InFlight {
            job,
            role,
            op: request.op,
            sent_at: now,
            late_ns: (!waits).then_some(0),
            done_at: None,
        };
        if id as usize == self.requests.len() {
            self.requests.push(in_flight);
        } else {
            self.requests[id as usize] = in_flight;
        }
    }

    /// What costs time on a core, and how much; the first that was sent.
    pub(crate) fn unpaid(&mut self) -> Option<(Paid, Nanos)> {
        self.unpaid.pop_front()
    }

    /// Time that servers spun since this was last asked.
    pub(crate) fn spun_ns(&mut self) -> Nanos {
        std::mem::take(&mut self.spun_ns)
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
        for completion in completions.drain(..) {
            let id = completion.id as u32;
            let request = &mut self.requests[id as usize];
            let toll = &mut self.slots[self.layout.device(request.role)].toll;
            self.spun_ns += toll.spin_ns(now, request.sent_at);
            request.done_at = Some(now);
            match self.answer_at(id) {
                Some(at) if at > now => later.push((at, id)),
                Some(_) => answered.push(self.answer(now, id)),
                None => {}
            }
        }
        self.completions = completions;
    }

    /// A request comes to its device after what the sender's path takes, or later. Gives when it is answered, if
    /// the device is done with it.
    pub(crate) fn comes(&mut self, now: Nanos, id: u32) -> Option<Nanos> {
        let path_ns = self.live.map_or(0, |live| live.path_ns);
        let request = &mut self.requests[id as usize];
        request.late_ns = Some((now - request.sent_at).saturating_sub(path_ns));
        self.answer_at(id).map(|at| at.max(now))
    }

    /// When a request is answered that the device is done with and that has come to it: no sooner than its path
    /// lets it, and as much later as it came. The device's own queue is not kept waiting for it.
    fn answer_at(&self, id: u32) -> Option<Nanos> {
        let path_ns = self.live.map_or(0, |live| live.path_ns);
        let request = &self.requests[id as usize];
        let late_ns = request.late_ns?;
        Some((request.sent_at + path_ns).max(request.done_at? + late_ns))
    }

    /// A request is answered; gives its job.
    pub(crate) fn answer(&mut self, now: Nanos, id: u32) -> u32 {
        let request = self.requests[id as usize];
        self.free.push(id);
        self.traffic[request.role as usize].answered(now, request.op, request.sent_at);
        if request.op == Op::Flush {
            self.release_held(now, request.role);
        }
        request.job
    }

    fn release_held(&mut self, now: Nanos, role: Role) {
        while !self.traffic[role as usize].is_flushing() {
            let Some((job, request)) = self.held[role as usize].pop_front() else {
                return;
            };
            self.submit(now, job, role, request);
        }
    }

    /// Forgets what was asked until `now`.
    pub(crate) fn begin(&mut self, now: Nanos) {
        self.traffic.iter_mut().for_each(|one| one.begin(now));
    }

    /// What each role asked.
    pub(crate) fn io(&self, now: Nanos) -> Vec<RoleIo> {
        let roles = Role::ALL.iter().zip(&self.traffic);
        roles
            .filter_map(|(role, traffic)| traffic.io(now, *role))
            .collect()
    }
}
