//! A minimal driver: runs a model on virtual time.

use crate::{Completion, Device, Nanos, Request, RequestId};

/// Drives one device on virtual time, for tests, benchmarks and simple simulations.
#[derive(Debug)]
pub struct Driver<D: Device> {
    device: D,
    now: Nanos,
    next_id: RequestId,
    completions: Vec<Completion>,
}

impl<D: Device> Driver<D> {
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
