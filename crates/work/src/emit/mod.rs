//! Turns written as steps of the work: demands are kept, waits are dropped.
//!
//! Only `extract` may use this module.

pub(crate) mod background;
mod call_steps;
pub(crate) mod emitter;
pub(crate) mod file_steps;
pub(crate) mod log_rules;
pub(crate) mod replica_session;
pub(crate) mod step_writer;
mod unread_requests;
