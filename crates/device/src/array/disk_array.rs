//! The array as a [`Device`]: takes requests, keeps the members at work, reports completions.

use std::ops::Range;

use super::controller_cache::Slab;
use super::members::Members;
use super::raid_layout::RaidLayout;
use super::{ArrayParams, ControllerParams};
use crate::array::ArrayMember;
use crate::array::controller_cache::DestageQueue;
use crate::array::parity::ParityRow;
use crate::array::raid_layout::{LaneExtent, LaneExtents, OverwrittenPart};
use crate::virtual_time_driver::{EventQueue, LatestTime};
use crate::{Completion, Device, Nanos, Op, Precondition, Request, RequestId, WrittenSectors};

/// A request of the host that is not completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostRequest {
    id: RequestId,
    pub(super) request: Request,
    /// When the link to the host is done with it.
    linked: Nanos,
    /// Tasks that it waits for.
    pub(super) tasks: u32,
}

/// What a task is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum TaskOwner {
    Host(u32),
    /// A batch of the write cache.
    Batch(u32),
}

/// Commands to members that must all be completed before something else follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemberTask {
    pub(super) owner: TaskOwner,
    /// The row of a write with parity.
    pub(super) row: u64,
    /// Whether its writes follow when its reads are done.
    pub(super) writes_follow: bool,
    pub(super) remaining: u32,
}

/// An event of the array itself, not of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ArrayEvent {
    /// The controller has handled a request, and received it if it is a write.
    Start(u32),
    Complete(RequestId),
    /// A batch may have become old.
    Age,
}

/// The model of an array.
#[derive(Debug)]
pub struct DiskArray {
    pub(super) layout: RaidLayout,
    pub(super) members: Members,
    pub(super) destage: Option<DestageQueue>,
    /// The failed member: the first, if one has failed; the times do not depend on which one.
    failed: Option<usize>,
    pub(super) hosts: Slab<HostRequest>,
    pub(super) tasks: Slab<MemberTask>,
    pub(super) agenda: EventQueue<ArrayEvent>,
    /// Extents of the next commands to members.
    pub(super) extents: LaneExtents,
    /// The touched part of each chunk of the current row.
    pub(super) touched: Vec<OverwrittenPart>,
    controller: ControllerParams,
    link_free: Nanos,
    host_sectors: u64,
    time: LatestTime,
}

impl DiskArray {
    /// An array at rest with an empty cache. Coupled members all have this seed; otherwise each has its own,
    /// derived from it.
    pub(crate) fn new<M: ArrayMember>(params: &ArrayParams<M>, seed: u64) -> Self {
        let layout = params.layout();
        Self {
            members: Members::new(params, seed),
            destage: DestageQueue::new(&params.controller, &layout),
            failed: params.degraded.then_some(0),
            hosts: Slab::new(),
            tasks: Slab::new(),
            agenda: EventQueue::new(),
            extents: LaneExtents::for_lanes(layout.members()),
            touched: vec![OverwrittenPart::default(); layout.columns() as usize],
            controller: params.controller.clone(),
            link_free: 0,
            host_sectors: 0,
            time: LatestTime::default(),
            layout,
        }
    }

    /// When the link has moved these sectors, which can move from `ready` on.
    fn link(&mut self, ready: Nanos, sectors: u32) -> Nanos {
        let duration = (f64::from(sectors) * self.controller.sector_ns) as Nanos;
        self.link_free = self.link_free.max(ready) + duration;
        self.link_free
    }

    /// Ends a request; the host sees its completion when the link is done with it too.
    pub(super) fn complete(&mut self, now: Nanos, host: u32) {
        let host = self.hosts.remove(host);
        self.agenda
            .push(now.max(host.linked), ArrayEvent::Complete(host.id));
    }

    fn happen(&mut self, now: Nanos, event: ArrayEvent, completions: &mut Vec<Completion>) {
        match event {
            ArrayEvent::Complete(id) => completions.push(Completion { id, at: now }),
            ArrayEvent::Start(host) => self.start(now, host),
            ArrayEvent::Age => self.grow_old(now),
        }
    }
}

impl Device for DiskArray {
    fn submit(&mut self, now: Nanos, id: RequestId, request: Request) {
        let now = self.time.to(now);
        let request = request.fitted(self.layout.capacity());
        let handled = now + self.controller.overhead_ns;
        let linked = match request.op {
            Op::Read | Op::Write => self.link(handled, request.sectors),
            Op::Flush | Op::Discard => handled,
        };
        let start = match request.op {
            Op::Write => linked,
            _ => handled,
        };
        if request.op == Op::Write {
            self.host_sectors += u64::from(request.sectors);
        }
        let host = self.hosts.insert(HostRequest {
            id,
            request,
            linked,
            tasks: 0,
        });
        if start == now {
            self.start(now, host);
        } else {
            self.agenda.push(start, ArrayEvent::Start(host));
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        match (self.agenda.next(), self.members.next_event()) {
            (Some(own), Some(members)) => Some(own.min(members)),
            (own, members) => own.or(members),
        }
    }

    fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        let now = self.time.to(now);
        loop {
            let own = self.agenda.next().filter(|&at| at <= now);
            let members = self.members.next_event().filter(|&at| at <= now);
            match (own, members) {
                (own, Some(at)) if own.is_none_or(|own| at <= own) => self.members_advance(at),
                (Some(at), _) => {
                    if let Some(event) = self.agenda.take() {
                        self.happen(at, event, completions);
                    }
                }
                _ => return,
            }
        }
    }

    fn capacity_sectors(&self) -> u64 {
        self.layout.capacity()
    }

    /// Puts the members into a state. Requests are spread evenly over them, and so is static data.
    fn precondition(&mut self, state: Precondition) {
        self.members.precondition(state);
    }

    fn preload(&mut self, request: &Request) {
        self.preload_members(&request.fitted(self.layout.capacity()));
    }

    fn written(&self) -> WrittenSectors {
        WrittenSectors {
            host_sectors: self.host_sectors,
            ..self.members.written()
        }
    }
}

// From requests of the host to commands for members, and back.

impl DiskArray {
    /// Begins a request that the controller has handled.
    pub(super) fn start(&mut self, now: Nanos, host: u32) {
        let request = self.hosts[host].request;
        match request.op {
            Op::Flush => self.flush(now, host),
            _ if request.sectors == 0 => self.complete(now, host),
            Op::Read if self.is_cached(&request) => self.complete(now, host),
            Op::Read => self.read(now, host),
            Op::Write if self.takes(&request) => self.cache_write(now, host),
            Op::Write => self.write_through(now, host),
            Op::Discard => self.write_data(now, host),
        }
    }

    fn read(&mut self, now: Nanos, host: u32) {
        let request = self.hosts[host].request;
        self.extents.clear();
        self.locate_read(request.sector, u64::from(request.sectors));
        let task = self.open_task(TaskOwner::Host(host), 0);
        self.send_reads(now, task);
    }

    /// Finds what members must read; with parity and a failed member, row by row.
    fn locate_read(&mut self, sector: u64, sectors: u64) {
        if self.failed.is_none() || self.layout.copies() > 1 {
            self.layout.data(sector, sectors, &mut self.extents);
            return;
        }
        let (size, end) = (self.layout.row_sectors(), sector + sectors);
        for row in sector / size..end.div_ceil(size) {
            self.layout.touch(row, sector, end, &mut self.touched);
            if let Some(row) = ParityRow::new(&self.layout, self.failed, row, &self.touched) {
                row.read(&mut self.extents);
            }
        }
    }

    fn write_through(&mut self, now: Nanos, host: u32) {
        let Request {
            sector, sectors, ..
        } = self.hosts[host].request;
        if self.layout.parity(0).is_none() {
            self.write_data(now, host);
            return;
        }
        let (size, end) = (self.layout.row_sectors(), sector + u64::from(sectors));
        let (first_whole, end_whole) = (sector.div_ceil(size), end / size);
        if first_whole < end_whole {
            self.write_whole_rows(now, host, first_whole, end_whole);
        }
        for row in sector / size..end.div_ceil(size) {
            if !(first_whole..end_whole).contains(&row) {
                self.write_row(now, TaskOwner::Host(host), row);
            }
        }
    }

    /// Passes a write or discard to every member that holds a part of it, without parity.
    fn write_data(&mut self, now: Nanos, host: u32) {
        let request = self.hosts[host].request;
        self.extents.clear();
        let sectors = u64::from(request.sectors);
        self.layout.data(request.sector, sectors, &mut self.extents);
        let task = self.open_task(TaskOwner::Host(host), 0);
        self.send_writes(now, task, request.op, request.fua);
    }

    /// Writes rows from `first` to `end`, data and parity, without reading.
    fn write_whole_rows(&mut self, now: Nanos, host: u32, first: u64, end: u64) {
        let chunk = self.layout.chunk();
        self.extents.clear();
        for member in 0..self.layout.members() {
            self.extents.add(member, first * chunk, end * chunk);
        }
        let task = self.open_task(TaskOwner::Host(host), 0);
        let fua = self.hosts[host].request.fua;
        self.send_writes(now, task, Op::Write, fua);
    }

    /// Writes the touched part of one row, after the reads that its parity needs.
    pub(super) fn write_row(&mut self, now: Nanos, owner: TaskOwner, row: u64) {
        let task = self.open_task(owner, row);
        self.touch(owner, row);
        self.extents.clear();
        if let Some(row) = ParityRow::new(&self.layout, self.failed, row, &self.touched) {
            row.read_before_write(&mut self.extents);
        }
        if self.extents.is_empty() {
            self.finish_row(now, task);
        } else {
            self.tasks[task].writes_follow = true;
            self.send_reads(now, task);
        }
    }

    fn finish_row(&mut self, now: Nanos, task: u32) {
        let MemberTask { owner, row, .. } = self.tasks[task];
        self.touch(owner, row);
        self.extents.clear();
        if let Some(row) = ParityRow::new(&self.layout, self.failed, row, &self.touched) {
            row.write(&mut self.extents);
        }
        let fua = match owner {
            TaskOwner::Host(host) => self.hosts[host].request.fua,
            TaskOwner::Batch(_) => false,
        };
        self.send_writes(now, task, Op::Write, fua);
    }

    fn touch(&mut self, owner: TaskOwner, row: u64) {
        match owner {
            TaskOwner::Host(host) => {
                let request = self.hosts[host].request;
                let end = request.sector + u64::from(request.sectors);
                self.layout
                    .touch(row, request.sector, end, &mut self.touched);
            }
            TaskOwner::Batch(batch) => self.touch_dirty(batch),
        }
    }

    pub(super) fn flush_members(&mut self, now: Nanos, host: u32) {
        let task = self.open_task(TaskOwner::Host(host), 0);
        let failed = self.failed;
        for member in (0..self.layout.members()).filter(|&member| failed != Some(member)) {
            self.send(now, task, member, Op::Flush, 0..0, false);
        }
    }

    pub(super) fn open_task(&mut self, owner: TaskOwner, row: u64) -> u32 {
        if let TaskOwner::Host(host) = owner {
            self.hosts[host].tasks += 1;
        }
        self.tasks.insert(MemberTask {
            owner,
            row,
            writes_follow: false,
            remaining: 0,
        })
    }

    /// Reads the extents, each from one of the members that hold it.
    pub(super) fn send_reads(&mut self, now: Nanos, task: u32) {
        let copies = self.layout.copies();
        for index in 0..self.extents.len() {
            let LaneExtent { lane, start, end } = self.extents.get(index);
            let member = if copies == 1 {
                lane
            } else {
                let lane = lane * copies..(lane + 1) * copies;
                self.members.best_copy(lane, self.failed, start)
            };
            self.send(now, task, member, Op::Read, start..end, false);
        }
    }

    /// Writes or discards the extents on every member that is to hold them.
    pub(super) fn send_writes(&mut self, now: Nanos, task: u32, op: Op, fua: bool) {
        let copies = self.layout.copies();
        for index in 0..self.extents.len() {
            let LaneExtent { lane, start, end } = self.extents.get(index);
            for member in lane * copies..(lane + 1) * copies {
                if self.failed != Some(member) {
                    self.send(now, task, member, op, start..end, fua);
                }
            }
        }
        if self.tasks[task].remaining == 0 {
            self.task_done(now, task);
        }
    }

    pub(super) fn send(
        &mut self,
        now: Nanos,
        task: u32,
        member: usize,
        op: Op,
        sectors: Range<u64>,
        fua: bool,
    ) {
        self.tasks[task].remaining += 1;
        let request = Request {
            op,
            sector: sectors.start,
            sectors: (sectors.end - sectors.start) as u32,
            fua,
        };
        self.members.submit(now, member, task, request);
    }

    /// Advances the first member that is due at `now`.
    pub(super) fn members_advance(&mut self, now: Nanos) {
        self.members.advance(now);
        for index in 0..self.members.done() {
            let task = self.members.task(index);
            self.tasks[task].remaining -= 1;
            if self.tasks[task].remaining == 0 {
                self.task_done(now, task);
            }
        }
    }

    fn task_done(&mut self, now: Nanos, task: u32) {
        let MemberTask {
            owner,
            writes_follow,
            ..
        } = self.tasks[task];
        if writes_follow {
            self.tasks[task].writes_follow = false;
            self.finish_row(now, task);
            return;
        }
        self.tasks.remove(task);
        match owner {
            TaskOwner::Batch(batch) => self.batch_done(now, batch),
            TaskOwner::Host(host) => {
                self.hosts[host].tasks -= 1;
                if self.hosts[host].tasks == 0 {
                    self.complete(now, host);
                }
            }
        }
    }
}

// Data that is on the members before time begins to count.

impl DiskArray {
    /// Gives members their shares of a request, with parity and copies.
    fn preload_members(&mut self, request: &Request) {
        if request.op == Op::Flush {
            return;
        }
        let (sector, sectors) = (request.sector, u64::from(request.sectors));
        self.extents.clear();
        if request.op == Op::Write && self.layout.parity(0).is_some() {
            self.locate_rows(sector, sector + sectors);
        } else {
            self.layout.data(sector, sectors, &mut self.extents);
        }
        let copies = self.layout.copies();
        for extent in self.extents.iter() {
            let share = Request {
                sector: extent.start,
                sectors: (extent.end - extent.start) as u32,
                ..*request
            };
            for member in extent.lane * copies..(extent.lane + 1) * copies {
                self.members.preload(member, &share);
            }
        }
    }

    fn locate_rows(&mut self, sector: u64, end: u64) {
        let size = self.layout.row_sectors();
        for row in sector / size..end.div_ceil(size) {
            self.layout.touch(row, sector, end, &mut self.touched);
            if let Some(row) = ParityRow::new(&self.layout, self.failed, row, &self.touched) {
                row.write(&mut self.extents);
            }
        }
    }
}
