//! A device behind the path to it.
//!
//! Source: crates/disk/src/pacer.rs. An answer that is due is given earlier by what the emulation makes good of the
//! path, but never before the request came; so the model's clock runs ahead of virtual time by at most that, and only to
//! an event that it is asked for.

use std::collections::VecDeque;

use tierwise_device::{Completion, Device, Nanos, Request};

use crate::block::io_cpu_cost::Toll;

/// A device, its clock, and what its requests cost.
pub(crate) struct Slot<'a> {
    device: Box<dyn Device + 'a>,
    clock: Nanos,
    next: Nanos,
    pub(crate) toll: Toll,
    /// Requests whose bytes its store has yet to take; the first is at it.
    pub(crate) to_store: VecDeque<u32>,
}

impl<'a> Slot<'a> {
    pub(crate) fn new(device: Box<dyn Device + 'a>, toll: Toll) -> Self {
        Self {
            device,
            clock: 0,
            next: Nanos::MAX,
            toll,
            to_store: VecDeque::new(),
        }
    }

    /// When it has something to do.
    pub(crate) fn next(&self) -> Nanos {
        self.next
    }

    /// A request comes to it.
    pub(crate) fn submit(&mut self, now: Nanos, id: u32, request: Request) {
        self.clock = self.clock.max(now);
        self.device.submit(self.clock, u64::from(id), request);
        self.look();
    }

    /// Does what is due.
    pub(crate) fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        let until = now + self.toll.made_good_ns;
        while let Some(event) = self.device.next_event().filter(|event| *event <= until) {
            self.clock = self.clock.max(event);
            self.device.advance(self.clock, completions);
        }
        self.look();
    }

    fn look(&mut self) {
        let event = self.device.next_event();
        self.next = event.map_or(Nanos::MAX, |at| at.saturating_sub(self.toll.made_good_ns));
    }
}
