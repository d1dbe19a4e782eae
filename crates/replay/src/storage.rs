//! Devices, where each role lies on them, and the requests under way.

use std::collections::VecDeque;

use tierwise_device::{Completion, Device, Nanos, Op, Request};
use tierwise_recording::Role;

use crate::layout::Layout;
use crate::slot::Slot;
use crate::throttle::Throttle;
use crate::toll::{Costs, Path, Toll};
use crate::traffic::Traffic;
use crate::{LivePath, RoleIo};

/// The longest request that the block layer passes on whole, in sectors: 1 MiB, as loop devices have it.
pub(crate) const LONGEST_SECTORS: u32 = 2048;

/// A request on its way.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    job: u32,
    role: Role,
    request: Request,
    sent_at: Nanos,
    /// Whether it has had what its path costs.
    passed: bool,
    /// When it came to its device.
    came_at: Nanos,
    costs: Costs,
}

/// The storage of a scenario.
pub(crate) struct Storage<'a> {
    slots: Vec<Slot<'a>>,
    layout: Layout,
    live: Option<LivePath>,
    requests: Vec<InFlight>,
    free: Vec<u32>,
    traffic: [Traffic; Role::ALL.len()],
    /// Of each role: requests on their way to the device, in the order in which they were sent.
    arriving: [VecDeque<u32>; Role::ALL.len()],
    /// Of each role: writes that wait behind a flush.
    held: [VecDeque<(u32, Request)>; Role::ALL.len()],
    completions: Vec<Completion>,
    /// What requests cost and nobody has given yet.
    unpaid: VecDeque<(Paid, Nanos)>,
    /// Time that servers of emulated disks spun and that no core has given yet.
    spun_ns: Nanos,
}

/// What is to be done with the time that a request costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paid {
    /// A core is busy for it; the request is under way meanwhile.
    Aside,
    /// A core is busy for it, then the request comes to its device.
    Before(u32),
    /// It passes, then the request comes to its device.
    Passes(u32),
    /// A core is busy for it, then the request is answered.
    After(u32),
}

impl<'a> Storage<'a> {
    pub(crate) fn new(
        devices: Vec<(Box<dyn Device + 'a>, Toll)>,
        layout: Layout,
        live: Option<LivePath>,
    ) -> Self {
        Self {
            slots: devices
                .into_iter()
                .map(|(device, toll)| Slot::new(device, toll))
                .collect(),
            layout,
            live,
            requests: Vec::with_capacity(1024),
            free: Vec::with_capacity(1024),
            traffic: std::array::from_fn(|_| Traffic::default()),
            arriving: std::array::from_fn(|_| VecDeque::new()),
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
            .map(Slot::next)
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
        let toll = &mut self.slots[self.layout.device(role)].toll;
        let (path, made_good_ns) = (toll.path, toll.made_good_ns);
        let id = self.free.pop().unwrap_or(self.requests.len() as u32);
        let in_flight = InFlight {
            job,
            role,
            request,
            sent_at: now,
            passed: false,
            came_at: now,
            costs: toll.costs(now, &request),
        };
        if id as usize == self.requests.len() {
            self.requests.push(in_flight);
        } else {
            self.requests[id as usize] = in_flight;
        }
        match path {
            Path::None => {
                self.pay(Paid::Aside, in_flight.costs.before_ns);
                self.comes(now, id);
            }
            Path::Served => self.pay(Paid::Before(id), in_flight.costs.before_ns.max(1)),
            Path::Passed => self.pay(Paid::Passes(id), made_good_ns.max(1)),
        }
        if path != Path::None {
            self.arriving[role as usize].push_back(id);
        }
    }

    fn pay(&mut self, what: Paid, cost_ns: Nanos) {
        if cost_ns > 0 {
            self.unpaid.push_back((what, cost_ns));
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

    /// A request has had what its path costs. It comes to its device, but none overtakes those sent before it: a loop
    /// device has one worker for all of a process.
    pub(crate) fn passed(&mut self, now: Nanos, id: u32) {
        self.requests[id as usize].passed = true;
        let role = self.requests[id as usize].role as usize;
        while let Some(&first) = self.arriving[role].front() {
            if !self.requests[first as usize].passed {
                return;
            }
            self.arriving[role].pop_front();
            self.comes(now, first);
        }
    }

    fn comes(&mut self, now: Nanos, id: u32) {
        let in_flight = &mut self.requests[id as usize];
        in_flight.came_at = now;
        let device = self.layout.device(in_flight.role);
        self.slots[device].submit(now, id, in_flight.request);
    }

    /// Lets devices do what is due at `now`; the jobs of requests that are answered go to `answered`.
    pub(crate) fn advance(&mut self, now: Nanos, answered: &mut Vec<u32>) {
        let mut completions = std::mem::take(&mut self.completions);
        for slot in self.slots.iter_mut().filter(|slot| slot.next() <= now) {
            slot.advance(now, &mut completions);
        }
        for completion in completions.drain(..) {
            let id = completion.id as u32;
            let in_flight = &self.requests[id as usize];
            let toll = &mut self.slots[self.layout.device(in_flight.role)].toll;
            self.spun_ns += toll.spin_ns(now, in_flight.came_at);
            match in_flight.costs.after_ns {
                0 => answered.push(self.answer(now, id)),
                after_ns => self.pay(Paid::After(id), after_ns),
            }
        }
        self.completions = completions;
    }

    /// A request is answered; gives its job.
    pub(crate) fn answer(&mut self, now: Nanos, id: u32) -> u32 {
        let in_flight = self.requests[id as usize];
        let (role, op) = (in_flight.role, in_flight.request.op);
        self.free.push(id);
        self.traffic[role as usize].answered(now, op, in_flight.sent_at);
        if op == Op::Flush {
            self.release_held(now, role);
        }
        in_flight.job
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
