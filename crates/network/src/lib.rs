//! Recorded work on other devices, cores, memory and clients: a queueing network on virtual time.
//!
//! Sessions are coroutines (`kernel/`). They wait at stations: cores, locks, the log, devices. Waits are recomputed,
//! never replayed.

mod api;
mod block;
mod kernel;
mod page_cache;
mod program;
mod stations;

pub use api::commit_settings::{CommitSettings, DelayOption, UnflushedCommits};
pub use api::parallel::{Answer, replay, replay_all};
pub use api::reproduction::{Reproduction, ReproductionRequest, recorded_mode};
pub use api::scenario::{Instance, Latency, MissAssumption, Mode, Outcome, RoleIo, Scenario};
pub use api::simulation_request::{
    JointAnswer, JointRequest, PlacementTarget, RunLength, SimulationRequest,
};
pub use api::summary::{
    Demands, DeviceSummary, LockSummary, ObservedSummary, Summary, WaitSummary,
};
pub use kernel::run::run_together;
pub use program::Program;
pub use tierwise_recording::UserError;
