//! The array as a [`Device`]: takes requests, keeps the members at work, reports completions.

use super::destage::Destage;
use super::extents::Extents;
use super::health::Health;
use super::layout::Layout;
use super::member::Member;
use super::members::Members;
use super::params::{ArrayParams, ControllerParams};
use super::rebuild::Rebuild;
use super::slab::Slab;
use super::touched::Touched;
use crate::due::DueList;
use crate::forward::Forward;
use crate::problem::ParamsError;
use crate::{Completion, Device, Nanos, Op, Precondition, Request, RequestId, Written};

/// A request of the host that is not completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host {
    id: RequestId,
    pub(super) request: Request,
    /// When the link to the host is done with it.
    linked: Nanos,
    /// Tasks that it waits for.
    pub(super) tasks: u32,
}

/// What a task is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owner {
    Host(u32),
    /// A batch of the write cache.
    Batch(u32),
    Rebuild,
}

/// Commands to members that must all be completed before something else follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) owner: Owner,
    /// The row of a write with parity, or the sector where a step of rebuilding begins.
    pub(super) row: u64,
    /// Whether its writes follow when its reads are done.
    pub(super) writes_follow: bool,
    pub(super) remaining: u32,
}

/// An event of the array itself, not of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The controller has handled a request, and received it if it is a write.
    Start(u32),
    Complete(RequestId),
    /// A batch may have become old.
    Age,
    /// The next step of rebuilding.
    Rebuild,
}

/// The model of an array.
#[derive(Debug)]
pub struct Array {
    pub(super) layout: Layout,
    pub(super) members: Members,
    pub(super) destage: Option<Destage>,
    pub(super) health: Health,
    pub(super) rebuild: Option<Rebuild>,
    pub(super) hosts: Slab<Host>,
    pub(super) tasks: Slab<Task>,
    pub(super) agenda: DueList<Event>,
    /// Extents of the next commands to members.
    pub(super) extents: Extents,
    /// The touched part of each chunk of the current row.
    pub(super) touched: Vec<Touched>,
    controller: ControllerParams,
    link_free: Nanos,
    host_sectors: u64,
    time: Forward,
}

impl Array {
    /// An array at rest with an empty cache. Coupled members all have this seed; otherwise each has its own,
    /// derived from it.
    ///
    /// # Errors
    /// A field of the parameters that is out of its range; fields that contradict each other, such as a failed
    /// member of RAID 0.
    pub fn new<M: Member>(params: &ArrayParams<M>, seed: u64) -> Result<Self, ParamsError> {
        params.check()?;
        Ok(Self::of(params, seed))
    }

    /// As [`Array::new`], for parameters that were checked.
    pub(crate) fn of<M: Member>(params: &ArrayParams<M>, seed: u64) -> Self {
        let layout = params.layout();
        Self {
            members: Members::new(params, seed),
            destage: Destage::new(&params.controller, &layout),
            health: Health::new(params.degraded, params.rebuild.is_some()),
            rebuild: params.rebuild.as_ref().map(Rebuild::new),
            hosts: Slab::new(),
            tasks: Slab::new(),
            agenda: DueList::new(),
            extents: Extents::for_lanes(layout.members()),
            touched: vec![Touched::default(); layout.columns() as usize],
            controller: params.controller.clone(),
            link_free: 0,
            host_sectors: 0,
            time: Forward::default(),
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
            .push(now.max(host.linked), Event::Complete(host.id));
    }

    fn happen(&mut self, now: Nanos, event: Event, completions: &mut Vec<Completion>) {
        match event {
            Event::Complete(id) => completions.push(Completion { id, at: now }),
            Event::Start(host) => self.start(now, host),
            Event::Age => self.grow_old(now),
            Event::Rebuild => self.rebuild_step(now),
        }
    }
}

impl Device for Array {
    fn submit(&mut self, now: Nanos, id: RequestId, request: Request) {
        let now = self.time.to(now);
        let request = request.fitted(self.layout.capacity());
        self.host_comes(now);
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
        let host = self.hosts.insert(Host {
            id,
            request,
            linked,
            tasks: 0,
        });
        if start == now {
            self.start(now, host);
        } else {
            self.agenda.push(start, Event::Start(host));
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

    fn written(&self) -> Written {
        Written {
            host_sectors: self.host_sectors,
            ..self.members.written()
        }
    }
}
