//! Load for volumes: a fixed number of requests outstanding, counted by time of completion.

pub use crate::request::request;
use tierwise_device::{Completion, Device, Nanos, Op};

pub const SECOND: Nanos = 1_000_000_000;
pub const MIB_SECTORS: u32 = 2048;

/// Where the next request of a closed loop lies.
#[derive(Clone, Copy)]
pub enum Place {
    Random,
    InSequence,
}

/// Keeps `depth` reads of `sectors` outstanding on a device, for as long as it is asked to.
pub struct ClosedLoop {
    pub device: Box<dyn Device>,
    pub now: Nanos,
    /// Requests that completed.
    pub done: u64,
    place: Place,
    sectors: u32,
    next: u64,
    completions: Vec<Completion>,
}

impl ClosedLoop {
    pub fn new(
        device: Box<dyn Device>,
        place: Place,
        sectors: u32,
        depth: u64,
        now: Nanos,
    ) -> Self {
        let mut this = Self {
            device,
            now,
            done: 0,
            place,
            sectors,
            next: 1,
            completions: Vec::new(),
        };
        (0..depth).for_each(|_| this.submit());
        this
    }

    fn submit(&mut self) {
        let places = self.device.capacity_sectors() / u64::from(self.sectors);
        let place = match self.place {
            // A step that has no factor in common with the number of places: none is next to the one before.
            Place::Random => self.next.wrapping_mul(0x9e37_79b9) % places,
            Place::InSequence => self.next % places,
        };
        let sector = place * u64::from(self.sectors);
        let read = request(Op::Read, sector, self.sectors);
        self.device.submit(self.now, self.next, read);
        self.next += 1;
    }

    /// Runs until `until`; no request is outstanding then if `refill` is false.
    pub fn run(&mut self, until: Nanos, refill: bool) {
        while let Some(event) = self.device.next_event().filter(|event| *event <= until) {
            self.now = event;
            self.completions.clear();
            self.device.advance(event, &mut self.completions);
            self.done += self.completions.len() as u64;
            if refill {
                (0..self.completions.len()).for_each(|_| self.submit());
            }
        }
        self.now = until;
    }

    /// Requests that complete in `seconds` from now on.
    pub fn count(&mut self, seconds: u64) -> u64 {
        let before = self.done;
        self.run(self.now + seconds * SECOND, true);
        self.done - before
    }
}
