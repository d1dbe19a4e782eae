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
pub use api::parallel::{SimulationAnswer, replay, replay_all};
pub use api::reproduction::{Reproduction, ReproductionRequest, recorded_run_mode};
pub use api::scenario::{
    InstanceScenario, MissAssumption, Outcome, ReplayMode, RoleIo, Scenario, TransactionLatency,
};
pub use api::simulation_request::{
    JointAnswer, JointRequest, PlacementTarget, RunLength, SimulationRequest,
};
pub use api::work_summary::{
    DeviceSummary, LockSummary, ObservedSummary, TransactionDemands, WaitSummary, WorkSummary,
};
pub use kernel::simulation_run::run_scenarios_together;
pub use program::Program;
pub use tierwise_recording::UserError;
