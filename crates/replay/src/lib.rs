//! Recorded work under another placement, on other devices, with more or fewer cores, clients or memory.
//!
//! Waits are recomputed, never replayed: sessions compete for cores, locks, the log and devices on virtual time.

mod api;
mod block;
mod durability;
mod engines;
mod kernel;
mod locks;
mod page_cache;
mod program;
mod scheduler;

pub use api::demands::{Demands, WaitSummary};
pub use api::error::ReplayError;
pub use api::joint_request::{JointAnswer, JointRequest};
pub use api::outcome::{Latency, Outcome, RoleIo};
pub use api::parallel::{Answer, replay, replay_all};
pub use api::reproduction::{Reproduction, ReproductionRequest, recorded_mode};
pub use api::scenario::{EmulatedPath, MissAssumption, Mode, Scenario};
pub use api::simulation_request::{
    EmulationOptions, PlacementTarget, RunLength, SimulationRequest,
};
pub use api::summary::{DeviceSummary, LockSummary, ObservedSummary, Summary};
pub use kernel::joint::run_together;
pub use program::prepared::Program;
