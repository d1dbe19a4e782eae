//! One recording from start to end: the work of `tierwise-record`.

use std::path::PathBuf;
use std::time::Instant;

use chrono::{SecondsFormat, Utc};
use tierwise_recording::{About, Role};

use crate::UserError;
use crate::database::servers::{FoundDatabase, WantedDatabase};
use crate::database::settings::{server_settings, server_warnings};
use crate::host::devices::DiscoveredDevices;
use crate::host::machine;
use crate::output::{self, UnfinishedRecording};
use crate::recording_window::RecordingControl;
use crate::schedule::BurstSchedule;
use crate::session::{RecordedDatabase, Session};
use crate::tracer::{TracerStorage, require_tracing_possible};

/// Bursts are kept in memory and read without delay; and the kernel takes 10 µs for each 4 KB it gives.
const BUFFER_BYTES: u64 = 16 << 20;

/// What is to be recorded, and how.
#[derive(Clone, Debug)]
pub struct RecordingOrder {
    /// Which database.
    pub wanted: WantedDatabase,
    /// Rules in place of those of its program: an engine's name or a TOML file.
    pub rules: Option<String>,
    /// Roles of files, before those of the rules: pattern of a path, role.
    pub roles: Vec<(String, Role)>,
    /// Directory of the recording, new or empty.
    pub out: PathBuf,
    /// When events are taken.
    pub schedule: BurstSchedule,
}

/// Records until the time is over, the control ends it or the database ends; what was recorded is kept. Gives the
/// description.
///
/// # Errors
/// If nothing can be recorded here, there is no such database, or the file system refuses.
pub fn record(order: &RecordingOrder, control: &dyn RecordingControl) -> Result<About, UserError> {
    require_tracing_possible()?;
    output::remove_killed_recordings()?;
    let target = FoundDatabase::find(&order.wanted, order.rules.as_deref(), &order.roles)?;
    let output = UnfinishedRecording::begin(&order.out)?;
    let made = record_target(order.schedule, &target, &output, control);
    let made = made.map_err(|error| output.explain(error))?;
    output.keep()?;
    Ok(made)
}

fn record_target(
    schedule: BurstSchedule,
    target: &FoundDatabase,
    output: &UnfinishedRecording,
    control: &dyn RecordingControl,
) -> Result<About, UserError> {
    let server = target.server();
    control.say(&format!("attaching to {server}"));
    // The engine's version, settings and counters need a connection to it.
    let prepared = About {
        started_at: Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true),
        tierwise: env!("CARGO_PKG_VERSION").to_owned(),
        engine: server.engine,
        engine_version: server.version,
        settings: server_settings(target.pid, &target.rules, &target.root),
        machine: machine::describe_machine(target.pid),
        warnings: [
            target.rules.warnings(true),
            server_warnings(target.pid, &target.rules, &target.root),
        ]
        .concat(),
        ..About::default()
    };
    let subject = RecordedDatabase {
        first_pid: Some(target.pid),
        pids: target.processes(),
        rules: target.rules.clone(),
        role_of: None,
        root: target.root.clone(),
        devices: DiscoveredDevices::mounted(target.mounts_of(), Vec::new()),
        disk_server_pids: None,
    };
    let places = TracerStorage {
        buffer_bytes: BUFFER_BYTES,
        spool_dir: output.path(),
        out: output.path(),
    };
    let mut session = Session::attach(subject, places, schedule)?;
    let began = Instant::now();
    session.run(None, control)?;
    control.say("decoding");
    session.finish(About {
        duration_s: began.elapsed().as_secs_f64(),
        ..prepared
    })
}
