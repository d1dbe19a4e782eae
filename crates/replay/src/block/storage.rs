//! Storage: devices, the layout of roles on them, and requests under way.

use std::collections::VecDeque;

use tierwise_device::{Completion, Nanos, Op, Request};
use tierwise_recording::Role;

use crate::api::outcome::RoleIo;
use crate::block::device_queue::{DeviceModel, DeviceQueue};
use crate::block::layout::Layout;
use crate::block::traffic::Traffic;

/// Longest request that the block layer sends whole, in sectors: 1 MiB, as for loop devices.
pub(crate) const MAX_REQUEST_SECTORS: u32 = 2048;

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    job: u32,
    role: Role,
    request: Request,
}

/// The storage of a scenario.
pub(crate) struct Storage {
    pub(crate) queues: Vec<DeviceQueue>,
    /// Time of the first event of all devices.
    due: Nanos,
    pub(crate) layout: Layout,
    requests: Vec<InFlight>,
    free: Vec<u32>,
    pub(crate) traffic: [Traffic; Role::ALL.len()],
    completions: Vec<Completion>,
    /// Requests that were sent on the path to an emulated disk, and its latency.
    departing: VecDeque<(u32, Nanos)>,
}

impl Storage {
    pub(crate) fn new(devices: Vec<(DeviceModel, Nanos)>, layout: Layout) -> Self {
        Self {
            queues: devices
                .into_iter()
                .map(|(device, path_ns)| DeviceQueue::new(device, path_ns))
                .collect(),
            due: Nanos::MAX,
            layout,
            requests: Vec::with_capacity(1024),
            free: Vec::with_capacity(1024),
            traffic: std::array::from_fn(|_| Traffic::default()),
            completions: Vec::with_capacity(1024),
            departing: VecDeque::new(),
        }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Time of the next event of any device.
    pub(crate) fn next(&self) -> Nanos {
        self.due
    }

    /// Time of the next event, where other databases may have changed it.
    pub(crate) fn next_of_shared(&mut self) -> Nanos {
        let queues = self.queues.iter_mut();
        queues
            .filter(|queue| queue.is_shared())
            .for_each(DeviceQueue::look);
        self.update_due();
        self.due
    }

    /// Updates that time: it is read at every event, and changes only when a device does something.
    fn update_due(&mut self) {
        let due = self.queues.iter().map(DeviceQueue::next).min();
        self.due = due.unwrap_or(Nanos::MAX);
    }

    /// Sends one request: to the device, or on the path to an emulated disk.
    fn submit(&mut self, now: Nanos, job: u32, role: Role, request: Request) {
        self.traffic[role as usize].note_sent(now, &request);
        let id = self.free.pop().unwrap_or(self.requests.len() as u32);
        let in_flight = InFlight { job, role, request };
        if id as usize == self.requests.len() {
            self.requests.push(in_flight);
        } else {
            self.requests[id as usize] = in_flight;
        }
        match self.queues[self.layout.device(role)].path_ns {
            0 => self.arrive(now, id),
            path_ns => self.departing.push_back((id, path_ns)),
        }
    }

    /// The next request that was sent on a path, and the path's latency.
    pub(crate) fn next_departing(&mut self) -> Option<(u32, Nanos)> {
        self.departing.pop_front()
    }

    /// A request arrives at its device.
    pub(crate) fn arrive(&mut self, now: Nanos, id: u32) {
        let InFlight { role, request, .. } = self.requests[id as usize];
        let device = self.layout.device(role);
        self.queues[device].submit(now, id, request, role == Role::Log);
        self.update_due();
    }

    /// Sends a role's request, split as needed; the number of requests.
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
            let (place, part) = self.layout.locate(role, at, left.min(MAX_REQUEST_SECTORS));
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

    /// Whether another write of a role may be sent that nobody waits for at once; `gently`: by the flusher.
    pub(crate) fn has_room(&self, role: Role, gently: bool) -> bool {
        self.traffic[role as usize].has_room(gently)
    }

    /// Sends a flush to a role's device.
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

    /// Advances the devices to `now`; jobs of completed requests go to `completed`.
    pub(crate) fn advance(&mut self, now: Nanos, completed: &mut Vec<u32>) {
        let mut completions = std::mem::take(&mut self.completions);
        for queue in self.queues.iter_mut().filter(|queue| queue.next() <= now) {
            queue.advance(now, &mut completions);
        }
        self.update_due();
        for completion in completions.drain(..) {
            completed.push(self.complete(now, completion.id as u32));
        }
        self.completions = completions;
    }

    /// Completes a request; its job.
    fn complete(&mut self, now: Nanos, id: u32) -> u32 {
        let in_flight = self.requests[id as usize];
        let (role, op) = (in_flight.role, in_flight.request.op);
        self.free.push(id);
        self.traffic[role as usize].note_completed(now, op);
        in_flight.job
    }

    /// Discards counts until `now`.
    pub(crate) fn reset_traffic(&mut self, now: Nanos) {
        self.traffic.iter_mut().for_each(|one| one.reset(now));
    }

    /// I/O of each role.
    pub(crate) fn io(&self, now: Nanos) -> Vec<RoleIo> {
        let roles = Role::ALL.iter().zip(&self.traffic);
        roles
            .filter_map(|(role, traffic)| traffic.io(now, *role))
            .collect()
    }
}
