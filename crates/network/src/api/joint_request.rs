//! Requests for several databases at once, as JSON, and their answers.

use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use tierwise_device::Profile;

use crate::api::outcome::Outcome;
use crate::api::parallel::on_threads;
use crate::api::simulation_request::SimulationRequest;
use crate::kernel::joint::run_together;
use crate::program::Program;
use tierwise_recording::UserError;

/// Several databases at once, each under its own scenario.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct JointRequest {
    /// One for each database, in the order of the programs.
    pub databases: Vec<SimulationRequest>,
}

/// The answer to a joint request, or the reason for its refusal.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum JointAnswer {
    /// The outcome of each database, in their order.
    Outcomes(Vec<Outcome>),
    /// The request was refused.
    Refused {
        /// Index of the database at fault.
        database: usize,
        /// What is wrong.
        message: String,
        /// How to correct it.
        fix: String,
    },
}

impl JointAnswer {
    /// Answers requests about `programs` on `threads` threads, in their order. A refused request does not affect the
    /// others. Requests not yet started when `stop` was set are missing at the end.
    #[must_use]
    pub fn all(
        programs: &[&Program],
        requests: &[JointRequest],
        profiles: &[Profile],
        threads: usize,
        stop: &AtomicBool,
    ) -> Vec<Self> {
        let answer = |request: &JointRequest| {
            request
                .run(programs, profiles)
                .unwrap_or_else(|(database, error)| Self::Refused {
                    database,
                    message: error.message,
                    fix: error.fix,
                })
        };
        on_threads(requests, threads, stop, answer)
    }
}

impl JointRequest {
    fn run(
        &self,
        programs: &[&Program],
        profiles: &[Profile],
    ) -> Result<JointAnswer, (usize, UserError)> {
        if self.databases.len() != programs.len() {
            let message = "a joint request has not one scenario for each database";
            let error = UserError::new(message, "give one for each, in their order");
            return Err((0, error));
        }
        let scenarios = programs.iter().zip(&self.databases).enumerate();
        let scenarios = scenarios.map(|(index, (program, request))| {
            let scenario = request.scenario(program, profiles);
            scenario
                .map(|scenario| (*program, scenario))
                .map_err(|error| (index, error))
        });
        run_together(&scenarios.collect::<Result<Vec<_>, _>>()?).map(JointAnswer::Outcomes)
    }
}
