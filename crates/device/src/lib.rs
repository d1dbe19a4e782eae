//! Device models on virtual time: no clock, no input or output, no threads, no randomness but a seed.
//!
//! A [`Device`] is driven by whoever owns time. The simulator drives it on virtual time; the live disk
//! drives it on the monotonic clock. A disk that reorders its queue cannot know a completion time when a
//! request arrives, so the interface is event-driven rather than a function from request to duration.
//!
//! A [`Profile`] holds the parameters of one device, read from TOML, and builds the model.

pub mod array;
pub mod conformance;
mod driver;
mod due;
pub mod hdd;
pub mod profile;
pub mod ram;
pub mod random;
mod request;
mod section;
pub mod ssd;
mod state;
pub mod volume;

pub use driver::Driver;
pub use profile::{Library, Params, Price, Profile, ProfileError, Source};
pub use request::{Completion, Nanos, Op, Request, RequestId, SECTOR_BYTES};
pub use state::{Precondition, Written};

/// Something with a service time.
///
/// All times are absolute nanoseconds of one clock that never runs backwards; its origin is the caller's.
/// Calls must have non-decreasing `now`.
pub trait Device: Send {
    /// Accepts a request. It completes in a later call of [`Device::advance`], never in this one.
    fn submit(&mut self, now: Nanos, id: RequestId, request: Request);

    /// The time at which something will happen inside, or `None` while the device is idle.
    fn next_event(&self) -> Option<Nanos>;

    /// Lets everything happen that is due at or before `now` and appends what completed, in order of time.
    fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>);

    /// Size of the addressable space, in sectors of [`SECTOR_BYTES`].
    fn capacity_sectors(&self) -> u64;

    /// Brings the device into a state that it would only reach after long use, at once: full, worn in, out of
    /// credit. Time does not pass. Call before the first request; a device without such a state ignores it.
    fn precondition(&mut self, _state: Precondition) {}

    /// Gives a request its lasting effect without taking time: what was loaded before time began to count.
    /// A device whose times do not depend on its content ignores it.
    fn preload(&mut self, _request: &Request) {}

    /// What was written since the device was built, by the host and to the medium.
    fn written(&self) -> Written {
        Written::default()
    }
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn submit(&mut self, now: Nanos, id: RequestId, request: Request) {
        (**self).submit(now, id, request);
    }

    fn next_event(&self) -> Option<Nanos> {
        (**self).next_event()
    }

    fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        (**self).advance(now, completions);
    }

    fn capacity_sectors(&self) -> u64 {
        (**self).capacity_sectors()
    }

    fn precondition(&mut self, state: Precondition) {
        (**self).precondition(state);
    }

    fn preload(&mut self, request: &Request) {
        (**self).preload(request);
    }

    fn written(&self) -> Written {
        (**self).written()
    }
}
