//! Several devices as one: RAID 0, 1, 10 and 5, optionally behind a controller with a write cache.
//!
//! Models: striping, mirroring and rotating parity over members of any kind, which are models of their own and
//! serve their shares at the same time; rotationally coupled members; small writes with parity by
//! read-modify-write or reconstruct-write, full stripes without reads; the choice of a copy to read; a
//! controller's command time, host link and write-back cache with a limit on what may be dirty; flush; one failed
//! member.
//! Layouts and small writes after Patterson, Gibson and Katz (SIGMOD 1988), Lee and Katz (ASPLOS 1991) and Chen et
//! al. (ACM Computing Surveys 26(2), 1994).
//! Does not model: a controller's read cache and read-ahead (members have their own); its limit of commands a
//! second; the time of exclusive or; locks on stripes; logs against the write hole; scrubbing; a second
//! failure; rebuilding.

mod cache;
mod layout;
mod members;
mod model;
mod params;
mod parity;
mod slab;
mod write_back;

pub use layout::Level;
pub use model::Array;
pub use params::{ArrayParams, ControllerParams, Member};
