//! Recorded work under another placement, on other devices, with more or fewer cores, clients or memory.

mod outcome;
mod scenario;

pub use outcome::{Latency, Outcome, RoleIo};
pub use scenario::{Mode, Scenario};
