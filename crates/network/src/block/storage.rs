//! Storage: devices, the layout of roles on them, requests under way and their counts by role.

use tierwise_device::{Completion, Nanos, Op, Request, SECTOR_BYTES};
use tierwise_recording::Role;

use crate::api::scenario::RoleIo;
use crate::block::devices::DeviceQueue;
use crate::block::role_layout::RoleLayout;
use crate::kernel::clock::{RequestId, SimulationEvent, TaskId, VirtualClock};

/// Longest request that the block layer sends whole, in sectors: 1 MiB, as for loop devices.
const MAX_REQUEST_SECTORS: u32 = 2048;
/// Writes that nobody waits for at once, of syncs and of the flusher, that may be under way on a partition: a half and
/// a quarter of 96, which is three quarters of a queue of 128 (Linux block/blk-wbt.c, `nr_requests`). The kernel allows
/// fewer beside reads.
const SYNC_WRITES: u32 = 48;
const FLUSHER_WRITES: u32 = 24;

/// Who waits for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOwner {
    /// A task that waits for its requests.
    Task(TaskId),
    /// An asynchronous request of a task, by its number.
    Submission(TaskId, u32),
    /// A write of the kernel's flusher, by its number.
    WriteBack(Role, u32),
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct RequestInFlight {
    owner: RequestOwner,
    role: Role,
    request: Request,
}

/// The storage of a scenario.
pub(crate) struct Storage {
    queues: Vec<DeviceQueue>,
    /// Time of the first event of all devices.
    due: Nanos,
    layout: RoleLayout,
    requests: Vec<RequestInFlight>,
    free: Vec<RequestId>,
    traffic: [RoleRequests; Role::ALL.len()],
    completions: Vec<Completion>,
    completed: Vec<RequestOwner>,
}

impl Storage {
    pub(crate) fn new(queues: Vec<DeviceQueue>, layout: RoleLayout) -> Self {
        Self {
            queues,
            due: Nanos::MAX,
            layout,
            requests: Vec::with_capacity(1024),
            free: Vec::with_capacity(1024),
            traffic: std::array::from_fn(|_| RoleRequests::default()),
            completions: Vec::with_capacity(1024),
            completed: Vec::with_capacity(1024),
        }
    }

    pub(crate) fn layout(&self) -> &RoleLayout {
        &self.layout
    }

    /// Time of the next event of any device.
    pub(crate) fn next(&self) -> Nanos {
        self.due
    }

    /// Looks whether other databases have changed a shared device.
    pub(crate) fn look_at_shared(&mut self) {
        self.queues.iter_mut().for_each(DeviceQueue::look_if_shared);
        self.update_due();
    }

    /// Updates the time of the first event: it is read at every event, and changes only when a device does something.
    fn update_due(&mut self) {
        let due = self.queues.iter().map(DeviceQueue::next).min();
        self.due = due.unwrap_or(Nanos::MAX);
    }

    /// Sends a role's request, split as needed; the number of requests.
    pub(crate) fn send(
        &mut self,
        clock: &mut VirtualClock,
        owner: RequestOwner,
        role: Role,
        op: Op,
        (sector, sectors): (u64, u32),
    ) -> u32 {
        let mut request = Request {
            op,
            sector: 0,
            sectors: 0,
            fua: false,
        };
        if op == Op::Flush {
            self.submit(clock, owner, role, request);
            return 1;
        }
        let (mut at, mut left, mut sent) = (sector, sectors.max(1), 0);
        while left > 0 {
            let part = left.min(MAX_REQUEST_SECTORS);
            (request.sector, request.sectors) = self.layout.locate(role, at, part);
            self.submit(clock, owner, role, request);
            left -= request.sectors;
            at += u64::from(request.sectors);
            sent += 1;
        }
        sent
    }

    /// Sends one request: to the device, or on the path to an emulated disk.
    fn submit(
        &mut self,
        clock: &mut VirtualClock,
        owner: RequestOwner,
        role: Role,
        request: Request,
    ) {
        self.traffic[role as usize].note_sent(clock.now(), &request);
        let in_flight = RequestInFlight {
            owner,
            role,
            request,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.requests[id.0 as usize] = in_flight;
                id
            }
            None => {
                self.requests.push(in_flight);
                RequestId(self.requests.len() as u32 - 1)
            }
        };
        match self.queues[self.layout.device(role)].send() {
            0 => self.arrive(clock.now(), id),
            path_ns => clock.add(clock.now() + path_ns, SimulationEvent::Arrival(id)),
        }
    }

    /// A request arrives at its device.
    pub(crate) fn arrive(&mut self, now: Nanos, id: RequestId) {
        let RequestInFlight { role, request, .. } = self.requests[id.0 as usize];
        let device = self.layout.device(role);
        self.queues[device].submit(now, id, request, role == Role::Log);
        self.update_due();
    }

    /// Whether another write of a role may be sent that nobody waits for at once; `gently`: by the flusher.
    pub(crate) fn has_room(&self, role: Role, gently: bool) -> bool {
        let most = if gently { FLUSHER_WRITES } else { SYNC_WRITES };
        self.traffic[role as usize].writes_under_way < most
    }

    /// Advances the devices to `now`; the owners of completed requests, to be given back by [`Storage::recycle`].
    pub(crate) fn advance(&mut self, now: Nanos) -> Vec<RequestOwner> {
        for queue in self.queues.iter_mut().filter(|queue| queue.next() <= now) {
            queue.advance(now, &mut self.completions);
        }
        self.update_due();
        let mut completed = std::mem::take(&mut self.completed);
        for completion in self.completions.drain(..) {
            let id = RequestId(completion.id as u32);
            let RequestInFlight {
                owner,
                role,
                request,
            } = self.requests[id.0 as usize];
            self.free.push(id);
            self.queues[self.layout.device(role)].receive();
            self.traffic[role as usize].note_completed(now, request.op);
            completed.push(owner);
        }
        completed
    }

    /// Takes an emptied list back, for the memory that it has.
    pub(crate) fn recycle(&mut self, completed: Vec<RequestOwner>) {
        self.completed = completed;
    }

    /// Discards counts until `now`.
    pub(crate) fn reset_traffic(&mut self, now: Nanos) {
        self.traffic
            .iter_mut()
            .for_each(|traffic| traffic.reset(now));
    }

    /// I/O of each role.
    pub(crate) fn io(&self, now: Nanos) -> Vec<RoleIo> {
        let roles = Role::ALL.iter().zip(&self.traffic);
        roles
            .filter_map(|(role, traffic)| traffic.io(now, *role))
            .collect()
    }
}

/// The requests of one role.
#[derive(Debug, Default)]
struct RoleRequests {
    reads: u64,
    writes: u64,
    flushes: u64,
    read_sectors: u64,
    written_sectors: u64,
    under_way: u32,
    busy_since: Nanos,
    busy_ns: u64,
    writes_under_way: u32,
}

impl RoleRequests {
    fn note_sent(&mut self, now: Nanos, request: &Request) {
        match request.op {
            Op::Read => {
                self.reads += 1;
                self.read_sectors += u64::from(request.sectors);
            }
            Op::Flush => self.flushes += 1,
            Op::Write | Op::Discard => {
                self.writes += 1;
                self.writes_under_way += 1;
                self.written_sectors += u64::from(request.sectors);
            }
        }
        if self.under_way == 0 {
            self.busy_since = now;
        }
        self.under_way += 1;
    }

    fn note_completed(&mut self, now: Nanos, op: Op) {
        if matches!(op, Op::Write | Op::Discard) {
            self.writes_under_way -= 1;
        }
        self.under_way -= 1;
        if self.under_way == 0 {
            self.busy_ns += now - self.busy_since;
        }
    }

    fn reset(&mut self, now: Nanos) {
        *self = Self {
            under_way: self.under_way,
            writes_under_way: self.writes_under_way,
            busy_since: now,
            ..Self::default()
        };
    }

    /// The role's I/O, if there was any.
    fn io(&self, now: Nanos, role: Role) -> Option<RoleIo> {
        let rest_ns = match self.under_way {
            0 => 0,
            _ => now - self.busy_since,
        };
        (self.reads + self.writes + self.flushes > 0).then(|| RoleIo {
            role,
            reads: self.reads,
            writes: self.writes,
            flushes: self.flushes,
            read_bytes: self.read_sectors * SECTOR_BYTES,
            written_bytes: self.written_sectors * SECTOR_BYTES,
            busy_s: (self.busy_ns + rest_ns) as f64 / 1e9,
        })
    }
}
