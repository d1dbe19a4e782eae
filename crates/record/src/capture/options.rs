//! What a capture is asked to do.

use std::path::PathBuf;
use std::time::Duration;

/// What to trace, and with how much room.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where tracefs is mounted.
    pub tracefs: PathBuf,
    /// The instances' names begin so; `-calls`, `-sched` and `-block` follow.
    pub instance: String,
    /// Processes to trace, with everything they start.
    pub pids: Vec<i32>,
    /// Room for events that were not read yet, for each core and instance.
    pub buffer_bytes: u64,
    /// Where what a long burst gives waits to be decoded, in a file without a name.
    pub spool_dir: PathBuf,
    /// How often that room is emptied.
    pub poll: Duration,
    /// Whether to find the threads that wake the traced ones, and follow their scheduling too.
    pub clients: bool,
    /// Processes whose processor time is not counted as foreign.
    pub ignore_pids: Vec<i32>,
}
