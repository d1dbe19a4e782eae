//! A recording by a schedule: the work of `tierwise-record`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use chrono::{SecondsFormat, Utc};
use tierwise_recording::{About, Role};

use crate::database::settings::settings_of;
use crate::database::target::{Target, Wanted};
use crate::host::devices::Devices;
use crate::host::machine;
use crate::output::Output;
use crate::schedule::{DiskSpace, Schedule, megabytes};
use crate::session::{Session, Subject};
use crate::tracer::Places;
use crate::tracing::Tracing;
use crate::{UserError, ledger};

/// Bursts are kept in memory and read without delay; and the kernel takes 10 µs for each 4 KB it gives.
const BUFFER_BYTES: u64 = 16 << 20;
/// Length of the burst that is not kept, in which clients show themselves.
const TRIAL: Duration = Duration::from_millis(100);
/// Interval of the checks whether the recording is over.
const LOOKS_EACH: Duration = Duration::from_millis(200);

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
    /// The recording ends early when it has reached this size.
    pub limit_bytes: u64,
}

/// Records until the time is over, `stop` is set or the database ends; what was recorded is kept. Gives the
/// description. `say` gets sentences for whoever waits.
///
/// # Errors
/// If nothing can be recorded here, there is no such database, or the file system refuses.
pub fn record(order: &Order, stop: &AtomicBool, say: &dyn Fn(&str)) -> Result<About, UserError> {
    let tracing = Tracing::open()?;
    tracing.sweep();
    ledger::sweep()?;
    let scheduled = Scheduled {
        order,
        stop,
        say,
        target: Target::find(&order.wanted, order.rules.as_deref(), &order.roles)?,
        output: Output::begin(&order.out, &tracing.name)?,
    };
    let made = scheduled.record(&tracing);
    let made = made.map_err(|error| scheduled.output.explain(error))?;
    scheduled.output.keep()?;
    Ok(made)
}

struct Scheduled<'a> {
    order: &'a Order,
    stop: &'a AtomicBool,
    say: &'a dyn Fn(&str),
    target: Target,
    output: Output,
}

impl Scheduled<'_> {
    fn record(&self, tracing: &Tracing) -> Result<About, UserError> {
        let (target, order) = (&self.target, self.order);
        let server = target.server();
        (self.say)(&format!("attaching to {server}"));
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
            tracefs: tracing.path(),
            instance: tracing.name.clone(),
            buffer_bytes: BUFFER_BYTES,
            spool_dir: self.output.path(),
            out: self.output.path(),
            whole: false,
        };
        let mut session = Session::attach(subject, places)?;
        let trial = session.find_clients(TRIAL)?;
        let space = DiskSpace::expected(&trial, &order.schedule);
        (self.say)(&space.sentence(order.limit_bytes));
        space.require(machine::free_bytes(&self.output.path()).unwrap_or(u64::MAX))?;
        let began = Instant::now();
        session.begin_unrecorded();
        self.take_bursts(&mut session, began + order.schedule.length)?;
        (self.say)("decoding");
        session.finish(About {
            duration_s: began.elapsed().as_secs_f64(),
            ..prepared
        })
    }

    fn take_bursts(&self, session: &mut Session, ends: Instant) -> Result<(), UserError> {
        let (target, schedule) = (&self.target, self.order.schedule);
        for gap in schedule.gaps() {
            let look = || session.look_for_clients();
            if self.over_after(gap, ends, look) || self.full(session)? {
                break;
            }
            if let Err(error) = session.begin_burst(target.processes()) {
                if target.alive() {
                    return Err(error);
                }
                break;
            }
            self.over_after(schedule.burst, ends, || ());
            if let Some(burst) = session.end_burst(target.processes())? {
                let events = burst.events;
                (self.say)(&format!("recording: {events} events in the last burst"));
            }
        }
        if target.alive() {
            session.end_unrecorded();
        }
        Ok(())
    }

    /// Waits, at most until the recording is over, and may do something meanwhile; gives whether it is over.
    fn over_after(&self, time: Duration, ends: Instant, mut meanwhile: impl FnMut()) -> bool {
        let until = (Instant::now() + time).min(ends);
        while !self.stop.load(Ordering::Relaxed) && self.target.alive() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return until >= ends;
            }
            meanwhile();
            thread::sleep(left.min(LOOKS_EACH));
        }
        true
    }

    fn full(&self, session: &Session) -> Result<bool, UserError> {
        let reached = self.output.size_bytes().max(session.taken()?.bytes);
        let full = reached >= self.order.limit_bytes;
        if full {
            let limit = megabytes(self.order.limit_bytes);
            (self.say)(&format!("the recording has reached its limit of {limit}"));
        }
        Ok(full)
    }
}
