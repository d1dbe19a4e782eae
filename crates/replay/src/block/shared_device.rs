//! Devices that several databases use at once: one model, one clock, one queue.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use tierwise_device::{Completion, Device, Nanos, Request};

/// Bits of a request's name that its database gave; the upper ones name the database.
const ID_BITS: u32 = 32;

/// The shared devices of a joint replay, by their key.
#[derive(Default)]
pub(crate) struct SharedDevices {
    devices: BTreeMap<usize, Rc<RefCell<Shared>>>,
}

impl SharedDevices {
    /// One database's access to the device with this key, which is built for the first one.
    pub(crate) fn join(
        &mut self,
        key: usize,
        build: impl FnOnce() -> Box<dyn Device>,
    ) -> SharedDevice {
        let shared = self.devices.entry(key).or_insert_with(|| {
            Rc::new(RefCell::new(Shared {
                model: build(),
                clock: 0,
                delivered: Vec::new(),
                end: 0,
                completions: Vec::new(),
            }))
        });
        let mut device = shared.borrow_mut();
        device.delivered.push(Vec::new());
        SharedDevice {
            database: device.delivered.len() - 1,
            shared: Rc::clone(shared),
        }
    }

    /// First sector behind the databases that already lie on the device.
    pub(crate) fn end(&self, key: usize) -> u64 {
        self.devices
            .get(&key)
            .map_or(0, |device| device.borrow().end)
    }

    /// Sets that sector, once the next database has its place.
    pub(crate) fn set_end(&mut self, key: usize, end: u64) {
        if let Some(device) = self.devices.get(&key) {
            device.borrow_mut().end = end;
        }
    }
}

struct Shared {
    model: Box<dyn Device>,
    /// Time of the model: with a path credit, ahead of a database's own by at most that credit.
    clock: Nanos,
    /// Completions that each database has yet to take.
    delivered: Vec<Vec<Completion>>,
    end: u64,
    completions: Vec<Completion>,
}

/// A shared device as one database sees it.
pub(crate) struct SharedDevice {
    database: usize,
    shared: Rc<RefCell<Shared>>,
}

impl SharedDevice {
    pub(crate) fn submit(&self, now: Nanos, id: u32, request: Request) {
        let mut shared = self.shared.borrow_mut();
        shared.clock = shared.clock.max(now);
        let (at, name) = (shared.clock, (self.database as u64) << ID_BITS);
        shared.model.submit(at, name | u64::from(id), request);
    }

    /// Time of the next event of the device, or of a completion that this database has not taken.
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        let shared = self.shared.borrow();
        let delivered = shared.delivered[self.database].first();
        let delivered = delivered.map(|completion| completion.at);
        delivered.or_else(|| shared.model.next_event())
    }

    /// Advances the device for all its databases; takes this database's completions.
    pub(crate) fn advance(&self, now: Nanos, completions: &mut Vec<Completion>) {
        let mut shared = self.shared.borrow_mut();
        let shared = &mut *shared;
        if shared.model.next_event().is_some_and(|at| at <= now) {
            shared.clock = shared.clock.max(now);
            shared.model.advance(shared.clock, &mut shared.completions);
            for completion in shared.completions.drain(..) {
                shared.delivered[(completion.id >> ID_BITS) as usize].push(completion);
            }
        }
        completions.append(&mut shared.delivered[self.database]);
    }
}
