//! What an array needs to know of its members.

use crate::Device;

/// A kind of device that can be a member of an array. [`crate::Profile`] is one.
pub trait Member {
    /// The addressable size, in bytes.
    fn capacity_bytes(&self) -> u64;

    /// Whether completed writes may be lost with the power until a flush.
    fn write_cache(&self) -> bool;

    /// Whether positions are reached by moving and turning, so that near is fast.
    fn is_rotating(&self) -> bool;

    /// One such device. The same seed gives the same times.
    fn build(&self, seed: u64) -> Box<dyn Device>;
}
