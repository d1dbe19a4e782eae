//! A device behind its path.
//!
//! Source: crates/disk/src/pacer.rs. The emulation completes a request earlier by its path credit, but never before
//! the request arrived. So the model's clock runs ahead of virtual time by at most that credit, and only to an event
//! that is due.

use std::collections::VecDeque;

use tierwise_device::{Completion, Device, Nanos, Request};

use crate::block::io_cpu_cost::IoCpuCost;

/// A device, its clock and the processor time of its requests.
pub(crate) struct DeviceQueue<'a> {
    device: Box<dyn Device + 'a>,
    clock: Nanos,
    next: Nanos,
    pub(crate) cpu_cost: IoCpuCost,
    /// Requests whose bytes the server's store has yet to copy; the first is being copied.
    pub(crate) store_queue: VecDeque<u32>,
}

impl<'a> DeviceQueue<'a> {
    pub(crate) fn new(device: Box<dyn Device + 'a>, cpu_cost: IoCpuCost) -> Self {
        Self {
            device,
            clock: 0,
            next: Nanos::MAX,
            cpu_cost,
            store_queue: VecDeque::new(),
        }
    }

    /// Time of the device's next event.
    pub(crate) fn next(&self) -> Nanos {
        self.next
    }

    /// Submits a request that has arrived.
    pub(crate) fn submit(&mut self, now: Nanos, id: u32, request: Request) {
        self.clock = self.clock.max(now);
        self.device.submit(self.clock, u64::from(id), request);
        self.look();
    }

    /// Completes requests that are due.
    pub(crate) fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        let until = now + self.cpu_cost.path_credit_ns;
        while let Some(event) = self.device.next_event().filter(|event| *event <= until) {
            self.clock = self.clock.max(event);
            self.device.advance(self.clock, completions);
        }
        self.look();
    }

    fn look(&mut self) {
        let event = self.device.next_event();
        self.next = event.map_or(Nanos::MAX, |at| {
            at.saturating_sub(self.cpu_cost.path_credit_ns)
        });
    }
}
