//! Options of a tracer.

use std::path::PathBuf;
use std::time::Duration;

/// The processes to trace, and the size of the buffers.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where tracefs is mounted.
    pub tracefs: PathBuf,
    /// The instances' names begin so; `-calls`, `-sched` and `-block` follow.
    pub instance: String,
    /// Processes to trace, with everything they start.
    pub pids: Vec<i32>,
    /// Buffer for unread events, for each core and instance; less on a machine with so many cores that it
    /// would take a sixteenth of the memory. Requests to devices get a quarter of it.
    pub buffer_bytes: u64,
    /// How often that buffer is emptied.
    pub poll: Duration,
    /// Directory of the nameless file in which the data of a long burst waits to be decoded.
    pub spool_dir: PathBuf,
    /// Servers of emulated disks, whose processor time is storage's, not foreign.
    pub disk_server_pids: Vec<i32>,
}
