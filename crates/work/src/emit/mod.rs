//! Turns written as steps of the work: demands are kept, waits are dropped.
//!
//! Only `extract` may use this module.

pub(crate) mod background;
mod calls;
pub(crate) mod emitter;
mod step_writer;
