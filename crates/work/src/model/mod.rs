//! The work itself, as plain values: what a recording asks of the machine.
//!
//! Nothing here knows how it is found in a recording.

pub(crate) mod mechanism;
pub(crate) mod step;
pub(crate) mod work;
