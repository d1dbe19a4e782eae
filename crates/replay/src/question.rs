//! Questions as they come from outside, as JSON, and the scenarios that they mean.

use std::collections::BTreeMap;

use serde::Deserialize;
use tierwise_device::Profile;
use tierwise_recording::Role;
use tierwise_work::PATH_NS;

use crate::program::Program;
use crate::{LivePath, Misses, Mode, ReplayError, Scenario};

/// Where a role shall lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// On the device of a profile, by its place in the list that goes with the questions; roles with the same
    /// number share one device.
    Profile(usize),
    /// On the recorded device of that place in the work.
    Recorded(usize),
}

/// For how long.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// Until every turn was done once.
    Once,
    /// For so many seconds of work that goes on.
    SteadyS(f64),
}

/// The path to an emulated live disk; see [`LivePath`].
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Live {
    /// What the emulation makes good of its own time, in microseconds; none for what is usual.
    #[serde(default)]
    pub path_us: Option<f64>,
    /// Whether a flush holds up what the kernel writes.
    pub serial_flush: bool,
}

/// One question under one seed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Places of the roles that are not to stay where they were recorded.
    #[serde(default)]
    pub placement: BTreeMap<Role, Place>,
    /// Cores; none as recorded.
    pub cores: Option<u32>,
    /// Speed of a core, 1 that of the recording.
    pub cpu_speed: f64,
    /// Memory; none as recorded.
    pub memory_bytes: Option<u64>,
    /// How reads are taken that the recording does not tell for another memory.
    #[serde(default)]
    pub misses: Misses,
    /// Share of the recorded machine's cores that other programs take; none as recorded.
    #[serde(default)]
    pub others_share: Option<f64>,
    /// Client sessions; none as recorded.
    pub clients: Option<u32>,
    /// For how long.
    pub mode: Length,
    /// Counted transactions that are enough, however little time that is; none to go on to the end.
    #[serde(default)]
    pub enough: Option<u64>,
    /// Seed of everything random.
    pub seed: u64,
    /// Whether the devices are emulated live.
    #[serde(default)]
    pub live: Option<Live>,
    /// Whether devices that were not recorded are as long use leaves them.
    #[serde(default)]
    pub worn: bool,
}

impl Question {
    /// The scenario that is meant; `profiles` is the list that [`Place::Profile`] counts in.
    ///
    /// # Errors
    /// A number that no device has; a span or a path that is no time.
    pub fn scenario(
        &self,
        program: &Program,
        profiles: &[Profile],
    ) -> Result<Scenario, ReplayError> {
        let recorded = program.devices.len();
        let mut devices = vec![None; recorded];
        let mut used: BTreeMap<usize, usize> = BTreeMap::new();
        let mut placement = Vec::with_capacity(self.placement.len());
        for (role, place) in &self.placement {
            let device = match *place {
                Place::Recorded(index) if index < recorded => index,
                Place::Profile(index) if index < profiles.len() => {
                    *used.entry(index).or_insert_with(|| {
                        devices.push(Some(profiles[index].clone()));
                        devices.len() - 1
                    })
                }
                _ => return Err(unknown_device(*role)),
            };
            placement.push((*role, device));
        }
        Ok(Scenario {
            devices,
            placement,
            cores: self.cores.unwrap_or(program.work.cores.max(1)),
            cpu_speed: self.cpu_speed,
            memory_bytes: self.memory_bytes,
            misses: self.misses,
            others_share: self.others_share,
            clients: self.clients,
            mode: self.mode.mode()?,
            enough: self.enough,
            seed: self.seed,
            as_observed: false,
            traced: false,
            live: self.live.map(Live::path).transpose()?,
            worn: self.worn,
        })
    }
}

impl Length {
    pub(crate) fn mode(self) -> Result<Mode, ReplayError> {
        match self {
            Self::Once => Ok(Mode::Once),
            Self::SteadyS(seconds) => Ok(Mode::Steady {
                span_ns: nanos(seconds, 1e9, "steady_s")?,
            }),
        }
    }
}

impl Live {
    fn path(self) -> Result<LivePath, ReplayError> {
        Ok(LivePath {
            path_ns: match self.path_us {
                Some(path_us) => nanos(path_us, 1e3, "path_us")?,
                None => PATH_NS,
            },
            serial_flush: self.serial_flush,
        })
    }
}

/// Longest time that may be asked for, in nanoseconds: a day.
const LONGEST_NS: f64 = 86_400e9;

fn nanos(time: f64, unit_ns: f64, field: &str) -> Result<u64, ReplayError> {
    let ns = time * unit_ns;
    if (0.0..=LONGEST_NS).contains(&ns) {
        return Ok(ns as u64);
    }
    Err(ReplayError::new(
        format!("{field} = {time} is no time from 0 to a day"),
        "give a time within that",
    ))
}

fn unknown_device(role: Role) -> ReplayError {
    ReplayError::new(
        format!("{} is placed on a device that is not there", role.name()),
        "name a device of the list",
    )
}
