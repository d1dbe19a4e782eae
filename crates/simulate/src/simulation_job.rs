//! A simulation as data.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde::Deserialize;
use tierwise_device::{Device, Precondition, Profile};
use tierwise_pattern::Pattern;

use crate::simulation_loop::StoppableSource;
use crate::{
    ArrivalLimits, ArrivalPace, LimitedSource, RequestColumn, RequestFile, RequestSource,
    ServiceTimesFile, SimulationReport, UserError, simulate_requests,
};

const COUNT_DEFAULT: u64 = 100_000;
const DEPTH_MAX: u32 = 65_536;
const VIRTUAL_S_MAX: f64 = 1e8;

/// A simulation: a file of requests or a pattern by name, and how they arrive.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SimulationJob {
    /// A file of requests.
    pub requests: Option<PathBuf>,
    /// The name of a pattern, instead of a file.
    pub preset: Option<String>,
    /// How many requests of the pattern.
    pub count: Option<u64>,
    /// How long the pattern goes on, in seconds of virtual time.
    pub virtual_s: Option<f64>,
    /// Requests outstanding at a time; the pattern's own or 1 if absent.
    pub depth: Option<u32>,
    /// Requests arrive at the times that the file gives.
    pub open: bool,
    /// State of the device before the simulation: see [`parse_precondition`].
    pub precondition: Option<String>,
    /// For the pattern and the device.
    pub seed: u64,
    /// Where the time of each request is written.
    pub times: Option<PathBuf>,
}

impl SimulationJob {
    /// Simulates it on a device of this profile; `stop` ends it soon, with the results so far.
    ///
    /// # Errors
    /// Options that contradict each other or make no sense; files that cannot be read, written or understood.
    pub fn run(&self, profile: &Profile, stop: &AtomicBool) -> Result<SimulationReport, UserError> {
        self.check()?;
        let precondition = parse_precondition(self.precondition.as_deref().unwrap_or("fresh"))?;
        let mut device = profile.build(self.seed);
        let (source, pace) = self.source(device.capacity_sectors())?;
        device.precondition(precondition);
        let limits = ArrivalLimits {
            until_ns: self.virtual_s.map_or(u64::MAX, |s| (s * 1e9) as u64),
            ..ArrivalLimits::default()
        };
        let mut times = self
            .times
            .as_deref()
            .map(ServiceTimesFile::create)
            .transpose()?;
        simulate_requests(
            &mut *device,
            &mut StoppableSource { source, stop },
            pace,
            limits,
            times.as_mut(),
        )
    }

    fn check(&self) -> Result<(), UserError> {
        let wrong = |message: &str, fix: &str| Err(UserError::new(message, fix));
        match (&self.requests, &self.preset) {
            (None, None) => {
                return wrong(
                    "nothing to simulate",
                    "give --requests FILE or --preset NAME",
                );
            }
            (Some(_), Some(_)) => {
                return wrong("--requests and --preset are both given", "give one of them");
            }
            (Some(_), None) if self.count.or(self.virtual_s.map(|_| 0)).is_some() => {
                return wrong(
                    "--count and --duration limit a preset, not a file",
                    "leave them out",
                );
            }
            (None, Some(_)) if self.open => {
                return wrong(
                    "--open needs times of arrival, which a preset has not",
                    "give --requests FILE",
                );
            }
            _ => {}
        }
        if self.count.is_some() && self.virtual_s.is_some() {
            return wrong("--count and --duration are both given", "give one of them");
        }
        if self.count == Some(0) {
            return wrong("--count 0 simulates nothing", "give at least 1");
        }
        if self
            .virtual_s
            .is_some_and(|s| !(s > 0.0 && s <= VIRTUAL_S_MAX))
        {
            return wrong(
                "--duration is not a time to simulate",
                "give seconds above 0, up to 1e8",
            );
        }
        if self.open && self.depth.is_some() {
            return wrong("--open and --depth are both given", "give one of them");
        }
        if self
            .depth
            .is_some_and(|depth| !(1..=DEPTH_MAX).contains(&depth))
        {
            return wrong("--depth is out of range", "give 1 to 65536");
        }
        self.check_files()
    }

    /// Refuses to write the times over the requests.
    fn check_files(&self) -> Result<(), UserError> {
        let same = |path: &Path, other: &Path| matches!((path.canonicalize(), other.canonicalize()), (Ok(path), Ok(other)) if path == other);
        match (&self.requests, &self.times) {
            (Some(requests), Some(times)) if same(requests, times) => Err(UserError::new(
                format!(
                    "--times would overwrite the requests in {}",
                    times.display()
                ),
                "name another file",
            )),
            _ => Ok(()),
        }
    }

    fn source(
        &self,
        capacity_sectors: u64,
    ) -> Result<(Box<dyn RequestSource>, ArrivalPace), UserError> {
        match (&self.requests, &self.preset) {
            (Some(file), _) => self.trace(file, capacity_sectors),
            (None, name) => self.pattern(name.as_deref().unwrap_or_default(), capacity_sectors),
        }
    }

    fn trace(
        &self,
        file: &Path,
        capacity_sectors: u64,
    ) -> Result<(Box<dyn RequestSource>, ArrivalPace), UserError> {
        let trace = RequestFile::open(file, capacity_sectors)?;
        if self.open && !trace.has(RequestColumn::ArrivalUs) {
            return Err(UserError::new(
                format!(
                    "{}, line 1: no column arrival_us, which --open needs",
                    file.display()
                ),
                "add it, or leave --open out",
            ));
        }
        let depth = self.depth.unwrap_or(1);
        let pace = if self.open {
            ArrivalPace::Open
        } else {
            ArrivalPace::Closed { depth }
        };
        Ok((Box::new(trace), pace))
    }

    fn pattern(
        &self,
        name: &str,
        capacity_sectors: u64,
    ) -> Result<(Box<dyn RequestSource>, ArrivalPace), UserError> {
        let pattern =
            Pattern::parse(name).map_err(|error| UserError::new(error.message, error.fix))?;
        if u64::from(pattern.block_sectors()) > capacity_sectors {
            return Err(UserError::new(
                format!("--preset {name}: one block is larger than the device"),
                "choose a smaller block",
            ));
        }
        let endless = if self.virtual_s.is_some() {
            u64::MAX
        } else {
            COUNT_DEFAULT
        };
        let count = self.count.unwrap_or(endless);
        let requests = pattern.requests(capacity_sectors, self.seed);
        let depth = self.depth.unwrap_or(pattern.depth);
        Ok((
            Box::new(LimitedSource::new(requests, count, pattern.think_ns)),
            ArrivalPace::Closed { depth },
        ))
    }
}

/// Reads `fresh`, `sequential`, `random` or `random:SHARE`, the share of the device that overwrites fell on.
///
/// # Errors
/// Another word, or a share that is not above 0 and at most 1.
pub fn parse_precondition(text: &str) -> Result<Precondition, UserError> {
    let share = match text.split_once(':') {
        None if text == "random" => Some(1.0),
        Some(("random", share)) => share
            .parse()
            .ok()
            .filter(|share| *share > 0.0 && *share <= 1.0),
        _ => None,
    };
    match (text, share) {
        ("fresh", _) => Ok(Precondition::Fresh),
        ("sequential", _) => Ok(Precondition::Sequential),
        (_, Some(active_share)) => Ok(Precondition::Random { active_share }),
        _ => Err(UserError::new(
            format!("--precondition {text:?} is not known"),
            "use fresh, sequential, random or random:SHARE with a share above 0 and at most 1",
        )),
    }
}
