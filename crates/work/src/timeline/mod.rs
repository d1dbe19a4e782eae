//! The time of one thread, with each segment classified once: on a core, ready, or waiting with a cause.
//!
//! Nothing here compares threads or depends on transactions.

pub(crate) mod segments;
pub(crate) mod wait;
