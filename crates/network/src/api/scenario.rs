//! A scenario: devices, placement, cores, memory, clients and length of one replay.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tierwise_device::Profile;
use tierwise_device::volume::{InstanceGate, InstanceLimits};
use tierwise_recording::{Role, UserError};

use crate::api::commit_settings::CommitSettings;
use crate::program::Program;

/// Up to this share of foreign processor time, emulated devices keep to their models' times.
const MAX_FOREIGN_SHARE: f64 = 0.2;
/// Largest number of cores, and of clients.
const MAX_COUNT: u32 = 100_000;
/// Most arrivals a second.
const MAX_RATE_PER_S: f64 = 1e7;

/// Whether work repeats or is done once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReplayMode {
    /// Sessions start again when their turns end; rates are measured after a warm-up.
    Steady {
        /// Measured virtual time.
        span_ns: u64,
    },
    /// Every turn is done once; the result is the time until the last one ended.
    Once,
}

/// How reads count if the recording does not tell whether another size of memory would answer them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MissAssumption {
    /// As recorded; the page cache has its most likely size.
    #[default]
    Likely,
    /// As hits; the page cache has its largest possible size.
    Fewest,
    /// As misses; the page cache has its smallest possible size.
    Most,
}

/// What one replay assumes.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Devices; none at an index stands for the recorded device with that index.
    pub devices: Vec<Option<Profile>>,
    /// Devices that other databases of a joint replay use too: by device index, their key.
    pub shared: BTreeMap<usize, usize>,
    /// Device index of each role; an unlisted role stays where it was recorded.
    pub placement: Vec<(Role, usize)>,
    /// Number of cores.
    pub cores: u32,
    /// Speed of a core relative to the recording's.
    pub cpu_speed: f64,
    /// Memory for pages of the engine and of the system, in bytes; none for as recorded.
    pub memory_bytes: Option<u64>,
    /// The engine's own buffer, a part of that memory; none for as recorded.
    pub buffer_bytes: Option<u64>,
    /// How reads of unknown reuse count with another size of memory.
    pub misses: MissAssumption,
    /// Share of the recorded machine's cores that other programs use; none for as recorded.
    pub background_share: Option<f64>,
    /// Number of client sessions; none for as recorded.
    pub clients: Option<u32>,
    /// Transactions that arrive in a second (open loop); none for clients that each wait for their answer.
    pub rate_per_s: Option<f64>,
    /// What settings of the engine change of commits.
    pub commits: CommitSettings,
    /// Limits of the machine for its network volumes together; none for no such limits.
    pub instance: Option<InstanceScenario>,
    /// Whether work repeats or is done once.
    pub mode: ReplayMode,
    /// Ends the measurement of steady work after this many transactions; none for the whole span. The warm-up
    /// lasts for a fifth as many.
    pub enough: Option<u64>,
    /// Seed of the random number generator.
    pub seed: u64,
    /// Whether recorded devices take their observed times instead of their profiles'.
    pub empirical_devices: bool,
    /// Whether runs on emulated live disks are predicted, which answer no faster than their path.
    pub emulated: bool,
    /// Whether those without a volatile cache are sent flushes all the same, as early versions did.
    pub emulated_flushes: bool,
    /// Whether devices that were not recorded are in the state of long use: SSDs overwritten at random, volumes and
    /// their machine out of credit. Recorded ones are as they were emulated.
    pub worn: bool,
}

impl Scenario {
    /// The recorded run on `cores` cores: every role on its recorded device.
    #[must_use]
    pub fn recorded(devices: usize, cores: u32, mode: ReplayMode, seed: u64) -> Self {
        Self {
            devices: vec![None; devices],
            shared: BTreeMap::new(),
            placement: Vec::new(),
            cores,
            cpu_speed: 1.0,
            memory_bytes: None,
            buffer_bytes: None,
            misses: MissAssumption::default(),
            background_share: None,
            clients: None,
            rate_per_s: None,
            commits: CommitSettings::default(),
            instance: None,
            mode,
            enough: None,
            seed,
            empirical_devices: false,
            emulated: false,
            emulated_flushes: false,
            worn: false,
        }
    }

    /// The recorded run, on the best known devices: emulated ones by their models on a quiet machine,
    /// because models know order and place; all others by their observed times.
    #[must_use]
    pub(crate) fn as_recorded(program: &Program, mode: ReplayMode, seed: u64) -> Self {
        let emulated = program.profiles.iter().any(Option::is_some);
        let exact = emulated && program.work.foreign_cpu_share <= MAX_FOREIGN_SHARE;
        Self {
            empirical_devices: !exact,
            emulated: exact,
            ..Self::recorded(
                program.work.devices.len(),
                program.work.cores.max(1),
                mode,
                seed,
            )
        }
    }

    /// Checks that the scenario is possible.
    pub(crate) fn check(&self, program: &Program) -> Result<(), UserError> {
        self.check_buffer(program)?;
        self.check_memory(program)?;
        self.commits.check(program)?;
        let is_count = |count: u32| (1..=MAX_COUNT).contains(&count);
        let recorded = program.work.devices.len();
        let rules = [
            (
                is_count(self.cores),
                "cores are not from 1 to 100,000",
                "give another number of cores",
            ),
            (
                self.cpu_speed.is_finite() && self.cpu_speed > 0.0,
                "a processor's speed is not above 0",
                "give 2 for one twice as fast",
            ),
            (
                self.clients.is_none_or(is_count),
                "clients are not from 1 to 100,000",
                "give another number of clients",
            ),
            (
                self.background_share
                    .is_none_or(|share| (0.0..=1.0).contains(&share)),
                "the share of other programs is not from 0 to 1",
                "give a share of the recorded cores",
            ),
            (
                self.placement
                    .iter()
                    .all(|placed| placed.1 < self.devices.len()),
                "a role is placed on a device that is not listed",
                "list the device",
            ),
            (
                self.devices.len() >= recorded,
                "the recorded devices are not all listed",
                "list them first, then others",
            ),
            (
                self.mode != ReplayMode::Steady { span_ns: 0 },
                "no time is counted",
                "give a span above 0",
            ),
            (
                self.rate_per_s
                    .is_none_or(|rate| rate > 0.0 && rate <= MAX_RATE_PER_S),
                "the rate of arrivals is not above 0 and up to 10,000,000 a second",
                "give another rate",
            ),
            (
                self.rate_per_s.is_none()
                    || (program.transactions() > 0
                        && matches!(self.mode, ReplayMode::Steady { .. })),
                "transactions cannot arrive at a rate: the recording shows none, or work that is done once",
                "leave out the rate",
            ),
            (
                self.enough != Some(0),
                "no transaction is counted",
                "give a number above 0 that is enough",
            ),
        ];
        let broken = rules.iter().find(|rule| !rule.0);
        broken.map_or(Ok(()), |rule| Err(UserError::new(rule.1, rule.2)))
    }

    /// Checks that this size of the engine's own buffer is possible and can be predicted.
    fn check_buffer(&self, program: &Program) -> Result<(), UserError> {
        let recorded = program.work.page_cache.engine_bytes;
        let Some(asked) = self.buffer_bytes.filter(|bytes| *bytes != recorded) else {
            return Ok(());
        };
        let memory = self.memory_bytes.unwrap_or(program.work.memory_bytes);
        let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let rules = [
            (
                program.memory_reason().is_none(),
                program.memory_reason().unwrap_or_default(),
                "ask with the recorded buffer",
            ),
            (
                recorded > 0,
                "the recording does not tell the size of the engine's own buffer".to_owned(),
                "leave out the buffer, or record with --dsn",
            ),
            (
                asked > recorded,
                format!(
                    "which reads a buffer of less than the recorded {:.0} MiB would let through is not known",
                    mebibytes(recorded)
                ),
                "ask for a larger buffer, or record with a smaller one",
            ),
            (
                asked < memory,
                format!(
                    "the engine's own buffer would take {:.0} MiB of {:.0} MiB of memory",
                    mebibytes(asked),
                    mebibytes(memory)
                ),
                "ask for more memory too, or for a smaller buffer",
            ),
        ];
        let broken = rules.into_iter().find(|rule| !rule.0);
        broken.map_or(Ok(()), |rule| Err(UserError::new(rule.1, rule.2)))
    }

    /// Checks that this size of memory is possible and can be predicted.
    fn check_memory(&self, program: &Program) -> Result<(), UserError> {
        let recorded = program.work.memory_bytes;
        let Some(asked) = self.memory_bytes.filter(|bytes| *bytes != recorded) else {
            return Ok(());
        };
        if let Some(reason) = program.memory_reason() {
            return Err(UserError::new(reason, "ask with the recorded memory"));
        }
        let recorded_engine = program.work.page_cache.engine_bytes;
        let engine = self.buffer_bytes.unwrap_or(recorded_engine);
        if asked <= engine.min(recorded) {
            let mebibytes = engine as f64 / f64::from(1 << 20);
            return Err(UserError::new(
                format!(
                    "the engine's own buffer takes {mebibytes:.0} MiB, which leaves no memory for anything else"
                ),
                "ask for more memory, or record with a smaller buffer",
            ));
        }
        Ok(())
    }
}

// Limits of a machine for all its network volumes together, as a request gives them.

/// The limits, and which recorded devices stand behind them beside those whose profiles are volumes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceScenario {
    /// The limits.
    #[serde(flatten)]
    pub limits: InstanceLimits,
    /// Indexes of recorded devices without a profile that are network volumes.
    #[serde(default)]
    pub recorded: Vec<usize>,
}

impl InstanceScenario {
    /// The gate; `spent`: without credits for a burst, as steady load leaves it.
    pub(crate) fn gate(&self, spent: bool) -> Result<InstanceGate, UserError> {
        InstanceGate::new(&self.limits, spent)
            .map_err(|error| UserError::new(error.message, error.fix))
    }
}

// The answer to a scenario.

/// Percentiles of the latency of transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TransactionLatency {
    /// Median.
    pub p50_us: f64,
    /// 95th percentile.
    pub p95_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Mean.
    pub mean_us: f64,
}

/// I/O of one role.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RoleIo {
    /// The role.
    pub role: Role,
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time in which at least one request of the role was outstanding.
    pub busy_s: f64,
}

/// The answer to one scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Measured virtual time.
    pub elapsed_s: f64,
    /// Turns of client sessions.
    pub turns: u64,
    /// Transactions of client sessions.
    pub transactions: u64,
    /// Latency of transactions.
    pub latency: TransactionLatency,
    /// Share of the client sessions' time by category: cpu, runnable, log_device, log_queue, read, write, lock,
    /// client, sleep, other. The shares sum to 1.
    pub shares: Vec<(String, f64)>,
    /// Commits per flush of the log.
    pub commits_per_flush: f64,
    /// Mean utilisation of the cores.
    pub busy_share: f64,
    /// Requests by role.
    pub io: Vec<RoleIo>,
    /// Transactions waiting for a session at the end, in an open loop.
    pub waiting: u64,
    /// Reasons why the answer is less certain than usual, as sentences.
    pub warnings: Vec<String>,
}
