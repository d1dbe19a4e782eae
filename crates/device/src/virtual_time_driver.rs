//! A minimal driver: runs a model on virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{Completion, Device, Nanos, Request, RequestId};

/// Drives one device on virtual time, for tests, benchmarks and simple simulations.
#[derive(Debug)]
pub struct VirtualTimeDriver<D: Device> {
    device: D,
    now: Nanos,
    next_id: RequestId,
    completions: Vec<Completion>,
}

impl<D: Device> VirtualTimeDriver<D> {
    /// Takes the device; time starts at 0.
    pub fn new(device: D) -> Self {
        Self {
            device,
            now: 0,
            next_id: 0,
            completions: Vec::with_capacity(1024),
        }
    }

    /// The device that is driven.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Virtual time, in nanoseconds.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Submits at the present time and returns the id given to the request.
    pub fn submit(&mut self, request: Request) -> RequestId {
        let id = self.next_id;
        self.next_id += 1;
        self.device.submit(self.now, id, request);
        id
    }

    /// Moves time to the next event inside the device. Returns what completed, or `None` if it is idle.
    pub fn step(&mut self) -> Option<&[Completion]> {
        let event = self.device.next_event()?;
        self.now = self.now.max(event);
        self.completions.clear();
        self.device.advance(self.now, &mut self.completions);
        Some(&self.completions)
    }

    /// Moves time to `until`, letting every event before it happen; returns what completed.
    pub fn run_until(&mut self, until: Nanos) -> Vec<Completion> {
        let mut all = Vec::new();
        while self.device.next_event().is_some_and(|event| event <= until) {
            all.extend_from_slice(self.step().unwrap_or_default());
        }
        self.now = self.now.max(until);
        all
    }

    /// Lets everything happen until the device is idle; returns what completed.
    pub fn run_until_idle(&mut self) -> Vec<Completion> {
        let mut all = Vec::new();
        while let Some(done) = self.step() {
            all.extend_from_slice(done);
        }
        all
    }

    /// Submits one request, waits for it and returns its service time in nanoseconds.
    ///
    /// # Panics
    /// If the device becomes idle without completing the request, which breaks the contract of [`Device`].
    pub fn serve(&mut self, request: Request) -> Nanos {
        let submitted = self.now;
        let id = self.submit(request);
        loop {
            let done = self
                .step()
                .expect("a device with an outstanding request has a next event");
            if let Some(completion) = done.iter().find(|completion| completion.id == id) {
                return completion.at - submitted;
            }
        }
    }
}

// Events at known future times.

/// Capacity that every model reserves at the start, so that no request allocates until more are outstanding.
pub(crate) const RESERVED: usize = 1024;

/// Events ordered by time, by default completions; those due at the same time leave in the order they were added.
#[derive(Debug)]
pub(crate) struct EventQueue<T = RequestId> {
    heap: BinaryHeap<Reverse<(Nanos, u64, T)>>,
    added: u64,
}

impl<T: Ord> EventQueue<T> {
    pub(crate) fn new() -> Self {
        Self {
            heap: BinaryHeap::with_capacity(RESERVED),
            added: 0,
        }
    }

    pub(crate) fn push(&mut self, at: Nanos, event: T) {
        self.heap.push(Reverse((at, self.added, event)));
        self.added += 1;
    }

    pub(crate) fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    /// Removes the earliest.
    pub(crate) fn take(&mut self) -> Option<T> {
        self.heap.pop().map(|Reverse((_, _, event))| event)
    }
}

impl EventQueue {
    /// Moves everything due at or before `now` to `completions`.
    pub(crate) fn drain(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        while self.next().is_some_and(|at| at <= now) {
            self.pop(completions);
        }
    }

    /// Moves the earliest to `completions`.
    pub(crate) fn pop(&mut self, completions: &mut Vec<Completion>) {
        if let Some(Reverse((at, _, id))) = self.heap.pop() {
            completions.push(Completion { id, at });
        }
    }
}

// Time that never runs backwards.

/// The latest time that a device was called with.
#[derive(Debug, Default)]
pub(crate) struct LatestTime(Nanos);

impl LatestTime {
    /// The time of a call at `now`: `now` itself, or the latest time before it if that is later.
    #[inline]
    pub(crate) fn to(&mut self, now: Nanos) -> Nanos {
        self.0 = self.0.max(now);
        self.0
    }
}
