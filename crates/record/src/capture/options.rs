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
    /// Room for events that were not read yet, for each core and instance; less on a machine with so many cores
    /// that it would take a sixteenth of the memory. Requests to devices get a quarter of it.
    pub buffer_bytes: u64,
    /// How often that room is emptied.
    pub poll: Duration,
    /// Where what a long burst gives waits to be decoded, in a file without a name.
    pub spool_dir: PathBuf,
    /// Servers of emulated disks, whose processor time is storage's, not foreign.
    pub disk_server_pids: Vec<i32>,
}
