//! What is asked.

use tierwise_device::Profile;
use tierwise_recording::Role;
use tierwise_work::PATH_NS;

use crate::program::Program;
use crate::{Misses, ReplayError};

/// Others that take more of the cores make emulated devices slower than their models.
const QUIET_SHARE: f64 = 0.2;
/// Most cores and clients.
const MOST: u32 = 100_000;

/// Whether work goes on or ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// Sessions start anew where their turns end; rates are taken after a first part that is not counted.
    Steady {
        /// Virtual time that is counted.
        span_ns: u64,
    },
    /// Every turn is done once; the time until the last one has ended.
    Once,
}

/// The path to an emulated live disk, for predictions that are to be compared with runs on one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LivePath {
    /// What the emulation makes good of the path's own time, in nanoseconds: a request that takes its device longer
    /// takes the device's time, as long as the path takes no longer than usual.
    pub path_ns: u64,
    /// While a partition flushes, what the kernel writes there of its own accord waits: the loop device has one
    /// worker for both.
    pub serial_flush: bool,
}

impl LivePath {
    /// As disks are emulated.
    pub(crate) const USUAL: Self = Self {
        path_ns: PATH_NS,
        serial_flush: true,
    };
}

/// One question to a recording.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Devices; none at an index stands for the recorded device of that index in the work.
    pub devices: Vec<Option<Profile>>,
    /// Index of each role's device; a role that is not named stays where it was recorded.
    pub placement: Vec<(Role, usize)>,
    /// Cores.
    pub cores: u32,
    /// Speed of a core, 1 that of the recording.
    pub cpu_speed: f64,
    /// Memory for pages, of the engine and of the system; none as recorded.
    pub memory_bytes: Option<u64>,
    /// How reads are taken that the recording does not tell for another size of memory.
    pub misses: Misses,
    /// Share of the recorded machine's cores that other programs take; none as recorded.
    pub others_share: Option<f64>,
    /// Number of client sessions; none as recorded.
    pub clients: Option<u32>,
    /// Whether work goes on or ends.
    pub mode: Mode,
    /// Counted transactions after which work that goes on has been seen enough of; none for all of the span. A
    /// fifth as many pass before it counts.
    pub enough: Option<u64>,
    /// Seed of everything random.
    pub seed: u64,
    /// Whether recorded devices take the times that they were observed to take, rather than their profiles'.
    pub as_observed: bool,
    /// Whether it is recorded as well: with the processor time that recording takes.
    pub traced: bool,
    /// The path to emulated live disks, if that is what is predicted.
    pub live: Option<LivePath>,
    /// Whether devices that were not recorded are as long use leaves them: SSDs overwritten at random, volumes out of
    /// credit. Recorded ones are as they were emulated.
    pub worn: bool,
}

impl Scenario {
    /// The recorded run itself on `cores` cores: every role on its recorded device.
    #[must_use]
    pub fn recorded(devices: usize, cores: u32, mode: Mode, seed: u64) -> Self {
        Self {
            devices: vec![None; devices],
            placement: Vec::new(),
            cores,
            cpu_speed: 1.0,
            memory_bytes: None,
            misses: Misses::default(),
            others_share: None,
            clients: None,
            mode,
            enough: None,
            seed,
            as_observed: false,
            traced: false,
            live: None,
            worn: false,
        }
    }

    /// The recorded run as it was recorded, and as it is known best: on a quiet machine emulated devices take the
    /// times of their models, which know order and place; otherwise every device takes times that it was observed to
    /// take.
    #[must_use]
    pub(crate) fn retraced(program: &Program, mode: Mode, seed: u64) -> Self {
        let emulated = program.profiles.iter().any(Option::is_some);
        let exact = emulated && program.work.foreign_cpu_share <= QUIET_SHARE;
        Self {
            as_observed: !exact,
            traced: true,
            live: exact.then_some(LivePath::USUAL),
            ..Self::recorded(program.devices.len(), program.work.cores.max(1), mode, seed)
        }
    }

    /// Whether it can be.
    pub(crate) fn check(&self, program: &Program) -> Result<(), ReplayError> {
        self.check_memory(program)?;
        let some = |count: u32| (1..=MOST).contains(&count);
        let recorded = program.devices.len();
        let rules = [
            (
                some(self.cores),
                "cores are not from 1 to 100,000",
                "give another number of cores",
            ),
            (
                self.cpu_speed.is_finite() && self.cpu_speed > 0.0,
                "a processor's speed is not above 0",
                "give 2 for one twice as fast",
            ),
            (
                self.clients.is_none_or(some),
                "clients are not from 1 to 100,000",
                "give another number of clients",
            ),
            (
                self.others_share
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
                self.mode != Mode::Steady { span_ns: 0 },
                "no time is counted",
                "give a span above 0",
            ),
            (
                self.enough != Some(0),
                "no transaction is counted",
                "give a number above 0 that is enough",
            ),
        ];
        let broken = rules.iter().find(|rule| !rule.0);
        broken.map_or(Ok(()), |rule| Err(ReplayError::new(rule.1, rule.2)))
    }
}
