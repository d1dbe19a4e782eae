//! The path of requests to an emulated disk.
//!
//! Source: crates/disk. A request arrives at the device when I/O threads have spent its processor time
//! (`block/io_cpu_cost.rs`). A loop device has one worker for all that one process sends, so requests stay in order.
//! The server's readers run in parallel, but its store copies the bytes of one write at a time
//! (`VolatileStore::write`).

use tierwise_device::{Nanos, Request};
use tierwise_recording::Role;

use crate::block::in_flight::{CpuCharge, InFlight};
use crate::block::io_cpu_cost::RequestPath;
use crate::block::storage::Storage;

impl Storage {
    pub(crate) fn submit(&mut self, now: Nanos, job: u32, role: Role, request: Request) {
        self.traffic[role as usize].note_sent(now, &request);
        let cpu_cost = &mut self.queues[self.layout.device(role)].cpu_cost;
        let (path, path_credit_ns) = (cpu_cost.path, cpu_cost.path_credit_ns);
        let id = self.free.pop().unwrap_or(self.requests.len() as u32);
        let in_flight = InFlight {
            job,
            role,
            request,
            sent_at: now,
            passed: false,
            costs: cpu_cost.costs(now, &request),
        };
        if id as usize == self.requests.len() {
            self.requests.push(in_flight);
        } else {
            self.requests[id as usize] = in_flight;
        }
        match path {
            RequestPath::Direct => self.arrive(now, id),
            RequestPath::EmulatedThreads => self.charge(
                CpuCharge::BeforeDevice(id),
                in_flight.costs.before_ns.max(1),
            ),
            RequestPath::EmulatedDelay => {
                self.charge(CpuCharge::FixedDelay(id), path_credit_ns.max(1))
            }
        }
        self.charge(CpuCharge::Concurrent, in_flight.costs.aside_ns);
        if path != RequestPath::Direct {
            self.arriving[role as usize].push_back(id);
        }
    }

    pub(crate) fn charge(&mut self, what: CpuCharge, cost_ns: Nanos) {
        if cost_ns > 0 {
            self.charges.push_back((what, cost_ns));
        }
    }

    /// The next processor time to run, in the order charged.
    pub(crate) fn next_charge(&mut self) -> Option<(CpuCharge, Nanos)> {
        self.charges.pop_front()
    }

    /// I/O threads have spent a request's parallel processor time; the store copies its bytes next.
    pub(crate) fn cpu_spent(&mut self, now: Nanos, id: u32) {
        let in_flight = &self.requests[id as usize];
        let store_ns = in_flight.costs.store_ns;
        if store_ns == 0 {
            return self.path_done(now, id);
        }
        let queue = &mut self.queues[self.layout.device(in_flight.role)];
        queue.store_queue.push_back(id);
        if queue.store_queue.len() == 1 {
            self.charge(CpuCharge::Store(id), store_ns);
        }
    }

    /// The store has copied a request's bytes.
    pub(crate) fn store_done(&mut self, now: Nanos, id: u32) {
        let role = self.requests[id as usize].role;
        let queue = &mut self.queues[self.layout.device(role)];
        queue.store_queue.pop_front();
        if let Some(&next) = queue.store_queue.front() {
            let store_ns = self.requests[next as usize].costs.store_ns;
            self.charge(CpuCharge::Store(next), store_ns);
        }
        self.path_done(now, id);
    }

    /// A request has passed the path; it arrives at its device after the requests before it.
    pub(crate) fn path_done(&mut self, now: Nanos, id: u32) {
        self.requests[id as usize].passed = true;
        let role = self.requests[id as usize].role as usize;
        while let Some(&first) = self.arriving[role].front() {
            if !self.requests[first as usize].passed {
                return;
            }
            self.arriving[role].pop_front();
            self.arrive(now, first);
        }
    }

    fn arrive(&mut self, now: Nanos, id: u32) {
        let in_flight = &self.requests[id as usize];
        let (role, request) = (in_flight.role, in_flight.request);
        self.submit_to_device(now, role, id, request);
    }
}
