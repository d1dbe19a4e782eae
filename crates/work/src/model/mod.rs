//! The work itself, as plain values: what a run requires of a machine.
//!
//! Nothing here depends on how work is extracted from a recording.

pub(crate) mod mechanism;
pub(crate) mod reuse;
pub(crate) mod step;
pub(crate) mod work;
