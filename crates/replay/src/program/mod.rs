//! Recorded work compiled once, before any run: operations in a flat list for each session. No state of a run.

pub(crate) mod operation;
pub(crate) mod prepared;
pub(crate) mod session_program;
