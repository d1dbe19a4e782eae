//! The path of requests to their devices.
//!
//! Source: crates/disk. A request to an emulated disk comes to it when storage's threads have spent on it what it costs
//! (`block/io_cpu_cost.rs`). A loop device has one worker for all that one process sends, so none overtakes another; the server's
//! readers work side by side, but its store takes the bytes of one write at a time (`VolatileStore::write`).

use tierwise_device::{Nanos, Request};
use tierwise_recording::Role;

use crate::block::in_flight::{InFlight, Paid};
use crate::block::io_cpu_cost::Path;
use crate::block::storage::Storage;

impl Storage<'_> {
    pub(crate) fn submit(&mut self, now: Nanos, job: u32, role: Role, request: Request) {
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
            Path::None => self.comes(now, id),
            Path::Served => self.pay(Paid::Before(id), in_flight.costs.before_ns.max(1)),
            Path::Passed => self.pay(Paid::Passes(id), made_good_ns.max(1)),
        }
        self.pay(Paid::Aside, in_flight.costs.aside_ns);
        if path != Path::None {
            self.arriving[role as usize].push_back(id);
        }
    }

    pub(crate) fn pay(&mut self, what: Paid, cost_ns: Nanos) {
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

    /// Storage's threads have spent on a request what they can spend on several at a time.
    pub(crate) fn served(&mut self, now: Nanos, id: u32) {
        let in_flight = &self.requests[id as usize];
        let store_ns = in_flight.costs.store_ns;
        if store_ns == 0 {
            return self.passed(now, id);
        }
        let slot = &mut self.slots[self.layout.device(in_flight.role)];
        slot.to_store.push_back(id);
        if slot.to_store.len() == 1 {
            self.pay(Paid::Store(id), store_ns);
        }
    }

    /// A device's store has the bytes of a request.
    pub(crate) fn stored(&mut self, now: Nanos, id: u32) {
        let role = self.requests[id as usize].role;
        let slot = &mut self.slots[self.layout.device(role)];
        slot.to_store.pop_front();
        if let Some(&next) = slot.to_store.front() {
            let store_ns = self.requests[next as usize].costs.store_ns;
            self.pay(Paid::Store(next), store_ns);
        }
        self.passed(now, id);
    }

    /// A request has had what its path costs, and comes to its device when those before it have.
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
        let (device, request) = (self.layout.device(in_flight.role), in_flight.request);
        self.come(now, device, id, request);
    }
}
