//! A device, and the path to it if it is emulated.
//!
//! Models: a request to an emulated disk takes the path's latency, or the device's time if that is longer. Source:
//! crates/disk/src/pacer.rs: the emulation completes a request earlier by its path's latency, but never before the
//! request arrived. So the model's clock runs ahead of virtual time by at most that latency, and only to a due event.
//! Leaves out: processor time of the emulation, and of a real device's interrupts.

use tierwise_device::{Completion, Device, Nanos, Request};

use crate::block::empirical_device::EmpiricalDevice;
use crate::block::shared_device::SharedDevice;

/// The model that serves a device's requests.
pub(crate) enum DeviceModel {
    /// The model of a profile.
    Profile(Box<dyn Device>),
    /// Recorded times.
    Empirical(Box<EmpiricalDevice>),
    /// A model that other databases use too.
    Shared(SharedDevice),
}

impl DeviceModel {
    fn submit(&mut self, now: Nanos, id: u32, request: Request, log: bool) {
        match self {
            Self::Profile(device) => device.submit(now, u64::from(id), request),
            Self::Empirical(device) => device.submit(now, u64::from(id), request, log),
            Self::Shared(device) => device.submit(now, id, request),
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        match self {
            Self::Profile(device) => device.next_event(),
            Self::Empirical(device) => device.next_event(),
            Self::Shared(device) => device.next_event(),
        }
    }

    fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        match self {
            Self::Profile(device) => device.advance(now, completions),
            Self::Empirical(device) => device.advance(now, completions),
            Self::Shared(device) => device.advance(now, completions),
        }
    }
}

/// A device and its clock.
pub(crate) struct DeviceQueue {
    device: DeviceModel,
    clock: Nanos,
    next: Nanos,
    /// Latency of the path to an emulated disk; 0 for other devices.
    pub(crate) path_ns: Nanos,
}

impl DeviceQueue {
    pub(crate) fn new(device: DeviceModel, path_ns: Nanos) -> Self {
        Self {
            device,
            clock: 0,
            next: Nanos::MAX,
            path_ns,
        }
    }

    /// Time of the device's next event.
    pub(crate) fn next(&self) -> Nanos {
        self.next
    }

    /// Submits a request that has arrived; `log`: for a file of the log.
    pub(crate) fn submit(&mut self, now: Nanos, id: u32, request: Request, log: bool) {
        self.clock = self.clock.max(now);
        self.device.submit(self.clock, id, request, log);
        self.look();
    }

    /// Completes requests that are due.
    pub(crate) fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        let until = now + self.path_ns;
        while let Some(event) = self.device.next_event().filter(|event| *event <= until) {
            self.clock = self.clock.max(event);
            self.device.advance(self.clock, completions);
        }
        self.look();
    }

    /// Whether other databases use the device too.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.device, DeviceModel::Shared(_))
    }

    /// Updates the time of the device's next event.
    pub(crate) fn look(&mut self) {
        let event = self.device.next_event();
        self.next = event.map_or(Nanos::MAX, |at| at.saturating_sub(self.path_ns));
    }
}
