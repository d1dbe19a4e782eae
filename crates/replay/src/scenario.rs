//! What is asked.

use tierwise_device::Profile;
use tierwise_recording::Role;

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
    /// Memory for pages, of the engine and of the system.
    pub memory_bytes: Option<u64>,
    /// Number of client sessions; none as recorded.
    pub clients: Option<u32>,
    /// Whether work goes on or ends.
    pub mode: Mode,
    /// Seed of everything random.
    pub seed: u64,
}
