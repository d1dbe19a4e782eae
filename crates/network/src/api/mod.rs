//! Requests to a replay and its answers: scenarios, outcomes, refusals. Nothing here simulates anything.

pub(crate) mod commit_settings;
pub(crate) mod parallel;
pub(crate) mod reproduction;
pub(crate) mod scenario;
pub(crate) mod simulation_request;
pub(crate) mod work_summary;
