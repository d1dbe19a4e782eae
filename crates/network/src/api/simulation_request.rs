//! Simulation requests as JSON, and the scenarios they describe.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use tierwise_device::Profile;
use tierwise_recording::{Role, UserError};

use crate::api::commit_settings::CommitSettings;
use crate::api::parallel::map_on_threads;
use crate::api::scenario::{InstanceScenario, MissAssumption, Outcome, ReplayMode, Scenario};
use crate::kernel::simulation_run::run_scenarios_together;
use crate::program::Program;

/// The device a role is placed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlacementTarget {
    /// A device built from the profile with this index in the list that goes with the requests; roles with the same
    /// index share one device.
    Profile(usize),
    /// The same, shared with all databases of a joint request that name it so.
    Shared(usize),
    /// The recorded device with this index.
    Recorded(usize),
}

/// For how long.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunLength {
    /// Until every turn was done once.
    Once,
    /// For this many seconds of work that repeats.
    SteadyS(f64),
}

/// One scenario to simulate with one seed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulationRequest {
    /// Devices of the roles that move.
    #[serde(default)]
    pub placement: BTreeMap<Role, PlacementTarget>,
    /// Number of cores; none for as recorded.
    pub cores: Option<u32>,
    /// Speed of a core relative to the recording's.
    pub cpu_speed: f64,
    /// Memory in bytes; none for as recorded.
    pub memory_bytes: Option<u64>,
    /// The engine's own buffer in bytes; none for as recorded.
    #[serde(default)]
    pub buffer_bytes: Option<u64>,
    /// How reads of unknown reuse count with another size of memory.
    #[serde(default)]
    pub misses: MissAssumption,
    /// Share of the recorded machine's cores that other programs use; none for as recorded.
    #[serde(default)]
    pub others_share: Option<f64>,
    /// Number of client sessions; none for as recorded.
    pub clients: Option<u32>,
    /// Transactions that arrive in a second, whether earlier ones are done or not; none for clients that each
    /// wait for their answer, as recorded.
    #[serde(default)]
    pub rate_per_s: Option<f64>,
    /// What settings of the engine change of commits; nothing by default.
    #[serde(default)]
    pub commits: CommitSettings,
    /// Limits of the machine for its network volumes together; none for no such limits.
    #[serde(default)]
    pub instance: Option<InstanceScenario>,
    /// For how long.
    pub mode: RunLength,
    /// Ends the measurement after this many transactions; none to measure the whole span.
    #[serde(default)]
    pub enough: Option<u64>,
    /// Seed of the random number generator.
    pub seed: u64,
    /// Whether runs on emulated live disks are predicted, which answer no faster than their path.
    #[serde(default)]
    pub emulated: bool,
    /// Whether those without a volatile cache are sent flushes all the same.
    #[serde(default)]
    pub emulated_flushes: bool,
    /// Whether devices that were not recorded are in the state of long use.
    #[serde(default)]
    pub worn: bool,
}

impl SimulationRequest {
    /// The scenario this request describes; [`PlacementTarget::Profile`] indexes `profiles`.
    ///
    /// # Errors
    ///
    /// An unknown device; a time that is negative or longer than a day.
    pub fn scenario(&self, program: &Program, profiles: &[Profile]) -> Result<Scenario, UserError> {
        let recorded = program.work.devices.len();
        let mut devices = vec![None; recorded];
        let mut used: BTreeMap<(bool, usize), usize> = BTreeMap::new();
        let mut shared = BTreeMap::new();
        let mut placement = Vec::with_capacity(self.placement.len());
        for (role, place) in &self.placement {
            let device = match *place {
                PlacementTarget::Recorded(index) if index < recorded => index,
                PlacementTarget::Profile(index) | PlacementTarget::Shared(index)
                    if index < profiles.len() =>
                {
                    let is_shared = matches!(place, PlacementTarget::Shared(_));
                    let device = *used.entry((is_shared, index)).or_insert_with(|| {
                        devices.push(Some(profiles[index].clone()));
                        devices.len() - 1
                    });
                    if is_shared {
                        shared.insert(device, index);
                    }
                    device
                }
                _ => return Err(unknown_device(*role)),
            };
            placement.push((*role, device));
        }
        Ok(Scenario {
            devices,
            shared,
            placement,
            cores: self.cores.unwrap_or(program.work.cores.max(1)),
            cpu_speed: self.cpu_speed,
            memory_bytes: self.memory_bytes,
            buffer_bytes: self.buffer_bytes,
            misses: self.misses,
            background_share: self.others_share,
            clients: self.clients,
            rate_per_s: self.rate_per_s,
            commits: self.commits,
            instance: self.instance.clone(),
            mode: self.mode.mode()?,
            enough: self.enough,
            seed: self.seed,
            empirical_devices: false,
            emulated: self.emulated,
            emulated_flushes: self.emulated_flushes,
            worn: self.worn,
        })
    }
}

impl RunLength {
    pub(crate) fn mode(self) -> Result<ReplayMode, UserError> {
        match self {
            Self::Once => Ok(ReplayMode::Once),
            Self::SteadyS(seconds) => Ok(ReplayMode::Steady {
                span_ns: nanos(seconds, 1e9, "steady_s")?,
            }),
        }
    }
}

/// Longest time that a request may specify: a day.
const LONGEST_NS: f64 = 86_400e9;

fn nanos(time: f64, unit_ns: f64, field: &str) -> Result<u64, UserError> {
    let ns = time * unit_ns;
    if (0.0..=LONGEST_NS).contains(&ns) {
        return Ok(ns as u64);
    }
    Err(UserError::new(
        format!("{field} = {time} is no time from 0 to a day"),
        "give a time within that",
    ))
}

fn unknown_device(role: Role) -> UserError {
    UserError::new(
        format!("{} is placed on a device that is not there", role.name()),
        "name a device of the list",
    )
}

// Requests for several databases at once, as JSON, and their answers.

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
        map_on_threads(requests, threads, stop, answer)
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
        run_scenarios_together(&scenarios.collect::<Result<Vec<_>, _>>()?)
            .map(JointAnswer::Outcomes)
    }
}
