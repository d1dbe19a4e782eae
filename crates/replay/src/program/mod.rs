//! Recorded work, compiled once for many replays. It holds no state of a run.

pub(crate) mod operation;
pub(crate) mod prepared;
pub(crate) mod session_program;
