//! One recording from start to end: the work of `tierwise-record`.

use std::path::PathBuf;
use std::time::Instant;

use chrono::{SecondsFormat, Utc};
use tierwise_recording::{About, Role};

use crate::UserError;
use crate::database::servers::{Target, Wanted};
use crate::database::settings::settings_of;
use crate::host::devices::Devices;
use crate::host::machine;
use crate::output::{self, Output};
use crate::schedule::Schedule;
use crate::session::{Session, Subject};
use crate::tracer::{Places, require_possible};
use crate::window::Control;

/// Bursts are kept in memory and read without delay; and the kernel takes 10 µs for each 4 KB it gives.
const BUFFER_BYTES: u64 = 16 << 20;

/// What is to be recorded, and how.
#[derive(Clone, Debug)]
pub struct Order {
    /// Which database.
    pub wanted: Wanted,
    /// Rules in place of those of its program: an engine's name or a TOML file.
    pub rules: Option<String>,
    /// Roles of files, before those of the rules: pattern of a path, role.
    pub roles: Vec<(String, Role)>,
    /// Directory of the recording, new or empty.
    pub out: PathBuf,
    /// When events are taken.
    pub schedule: Schedule,
}

/// Records until the time is over, the control ends it or the database ends; what was recorded is kept. Gives the
/// description.
///
/// # Errors
/// If nothing can be recorded here, there is no such database, or the file system refuses.
pub fn record(order: &Order, control: &dyn Control) -> Result<About, UserError> {
    require_possible()?;
    output::sweep()?;
    let target = Target::find(&order.wanted, order.rules.as_deref(), &order.roles)?;
    let output = Output::begin(&order.out)?;
    let made = recorded(order.schedule, &target, &output, control);
    let made = made.map_err(|error| output.explain(error))?;
    output.keep()?;
    Ok(made)
}

fn recorded(
    schedule: Schedule,
    target: &Target,
    output: &Output,
    control: &dyn Control,
) -> Result<About, UserError> {
    let server = target.server();
    control.say(&format!("attaching to {server}"));
    // The engine's version, settings and counters need a connection to it.
    let prepared = About {
        started_at: Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true),
        tierwise: env!("CARGO_PKG_VERSION").to_owned(),
        engine: server.engine,
        engine_version: server.version,
        settings: settings_of(target.pid, &target.rules, &target.root),
        machine: machine::describe(target.pid),
        warnings: target.rules.warnings(true),
        ..About::default()
    };
    let subject = Subject {
        first_pid: Some(target.pid),
        pids: target.processes(),
        rules: target.rules.clone(),
        role_of: None,
        root: target.root.clone(),
        devices: Devices::mounted(target.mounts_of(), Vec::new()),
        disk_server_pids: None,
    };
    let places = Places {
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
