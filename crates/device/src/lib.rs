//! Models of storage devices on virtual time: hard disks, solid-state disks, memory, cloud volumes and arrays.
//!
//! The crate has no clock, does no input or output, starts no thread, and takes randomness from a seed alone. The
//! same profile, seed and requests give the same completion times, to the nanosecond.
//!
//! - A [`Profile`] holds the parameters of one device, read from TOML. Every number in it names its source.
//! - [`Profile::build`] makes a [`Device`] of it. The caller owns time: it submits requests and asks for the
//!   next event. A disk that reorders its queue cannot know a completion time when a request arrives,
//!   so the interface is event-driven rather than a function from request to duration.
//! - A [`VirtualTimeDriver`] is a minimal caller, on virtual time.
//!
//! | module | models | left out |
//! |---|---|---|
//! | [`hdd`] | zones, seeks, rotation, segmented cache, command queue, flush | reallocation, shingled recording, errors |
//! | [`ssd`] | dies, channels, page map with greedy cleaning, fast flash, write cache | wear levelling, thermal limits |
//! | [`ram`] | fixed latency and a shared link | memory channels, refresh |
//! | [`volume`] | log-normal latency, limits and credits of a cloud volume; limits of its machine | other tenants |
//! | [`array`](mod@array) | RAID 0, 1, 10 and 5, controller with a write cache | scrubbing, a second failure, rebuilding |
//!
//! # Example
//!
//! Build a device from the text of a profile, submit requests and read their latencies:
//!
//! ```
//! use tierwise_device::{Nanos, Op, Profile, ProfileError, Request, VirtualTimeDriver};
//!
//! let text = r#"
//!     kind = "ssd"
//!     summary = "four dies behind SATA, without a translation layer"
//!     capacity_mb = 1_000
//!     channels = 4
//!     stripe_kib = 4
//!     read_us = 50
//!     program_us = 600
//!     read_overhead_us = 20
//!     write_overhead_us = 15
//!     flush_us = 10
//!     link_mb_per_s = 500
//!     write_cache_kib = 1024
//!     power_loss_protection = true
//!
//!     [source]
//!     capacity_mb = "made for this example"
//!     channels = "made for this example"
//!     stripe_kib = "made for this example"
//!     read_us = "made for this example"
//!     program_us = "made for this example"
//!     read_overhead_us = "made for this example"
//!     write_overhead_us = "made for this example"
//!     flush_us = "made for this example"
//!     link_mb_per_s = "made for this example"
//!     write_cache_kib = "made for this example"
//! "#;
//! let profile = Profile::parse(text, "example-ssd.toml")?;
//! let mut driver = VirtualTimeDriver::new(profile.build(1));
//!
//! // One read of 4 KiB at a time: 20 us of command, 50 us of flash, 8.192 us on the link.
//! let read = |sector| Request::new(Op::Read, sector, 8);
//! assert_eq!(driver.serve(read(0)), 78_192);
//!
//! // Two reads at the same time of the same die: the second waits 50 us for the first.
//! let submitted = driver.now();
//! driver.submit(read(0));
//! driver.submit(read(4 * 8));
//! let done = driver.run_until_idle();
//! let latencies: Vec<Nanos> = done.iter().map(|done| done.at - submitted).collect();
//! assert_eq!(latencies, [78_192, 128_192]);
//! # Ok::<(), ProfileError>(())
//! ```

pub mod array;
pub mod conformance;
pub mod hdd;
mod params_error;
pub mod profile;
mod profile_section;
pub mod ram;
pub mod random;
mod request;
pub mod ssd;
mod virtual_time_driver;
pub mod volume;

pub use params_error::ParamsError;
pub use profile::{DeviceParams, NumberSource, Profile, ProfileError, ProfileLibrary};
pub use request::{
    Completion, Nanos, Op, Precondition, Request, RequestId, SECTOR_BYTES, WrittenSectors,
};
pub use virtual_time_driver::VirtualTimeDriver;

/// Something with a service time.
///
/// All times are absolute nanoseconds of one clock; its origin is the caller's.
///
/// # Contract
///
/// Every model of this crate keeps these rules. [`conformance`] checks most of them for any implementation, and
/// `tests/models/conformance.rs` the rest for those of this crate.
///
/// - **Completion.** Each submit has exactly one [`Completion`]. It comes out of a later call of
///   [`Device::advance`], not before that call's `now`; its time is no earlier than the submit. Completions of one
///   call are in order of time.
/// - **Order of calls.** While [`Device::next_event`] lies before `now`, the caller advances before it submits. A
///   model that is behind may give times as if the request had come at that earlier event.
/// - **Lateness.** The times do not depend on when a late caller advances.
/// - **Time backwards.** A call with a `now` before that of an earlier call is taken as one at the latest time so
///   far. Times must stay below 2⁵⁵ ns (417 days).
/// - **Ids** are the caller's and mean nothing to a model. Requests with the same id complete one by one; the
///   caller cannot tell which is which.
/// - **Out of range.** No request is refused. A range that runs past the end is moved back to end with the last
///   sector, and one longer than the device becomes the whole device: [`Request::fitted`].
/// - **Zero length.** A read, write or discard of no sectors touches no sector. It takes the handling of a command;
///   on a volume it counts as one I/O.
/// - **Flush** has no address: sector and length are ignored. `fua` means something for a write only.
/// - **Memory.** A model reserves memory for 1,024 outstanding requests and allocates in none of these calls until
///   there are more, or a cache is fuller, than ever before.
pub trait Device: Send {
    /// Accepts a request at `now`, in nanoseconds. It completes in a later call of [`Device::advance`], never in
    /// this one.
    fn submit(&mut self, now: Nanos, id: RequestId, request: Request);

    /// The time at which something will happen inside, in nanoseconds, or `None` while the device is idle.
    fn next_event(&self) -> Option<Nanos>;

    /// Lets everything happen that is due at or before `now` and appends what completed, in order of time.
    fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>);

    /// Size of the addressable space, in sectors of [`SECTOR_BYTES`].
    fn capacity_sectors(&self) -> u64;

    /// Brings the device into a state that it would only reach after long use, at once: full, worn in, out of
    /// credit. Time does not pass. Call before the first request; a device without such a state ignores it.
    fn precondition(&mut self, _state: Precondition) {}

    /// Applies a request's lasting effect without taking time: data loaded before time began to count.
    /// A device whose times do not depend on its content ignores it.
    fn preload(&mut self, _request: &Request) {}

    /// What was written since the device was built, by the host and to the medium.
    fn written(&self) -> WrittenSectors {
        WrittenSectors::default()
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

    fn written(&self) -> WrittenSectors {
        (**self).written()
    }
}
