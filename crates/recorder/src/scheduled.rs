//! A recording by a schedule: the work of `tierwise-record`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tierwise_recording::{About, Role};

use crate::database::target::{Target, Wanted};
use crate::disk_space::{self, DiskSpace};
use crate::host::devices::Devices;
use crate::host::machine;
use crate::output::Output;
use crate::session::{Session, Subject};
use crate::tracer::Places;
use crate::tracing::Tracing;
use crate::{RecordError, Schedule, about, ledger};

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
pub fn record(order: &Order, stop: &AtomicBool, say: &dyn Fn(&str)) -> Result<About, RecordError> {
    let tracing = Tracing::open()?;
    tracing.sweep();
    ledger::sweep()?;
    let target = Target::find(&order.wanted, order.rules.as_deref(), &order.roles)?;
    let output = Output::begin(&order.out, &tracing.name)?;
    let made = record_to(&output, order, &target, &tracing, stop, say)
        .map_err(|error| output.explain(error))?;
    output.keep()?;
    Ok(made)
}

fn record_to(
    output: &Output,
    order: &Order,
    target: &Target,
    tracing: &Tracing,
    stop: &AtomicBool,
    say: &dyn Fn(&str),
) -> Result<About, RecordError> {
    say(&format!("attaching to {}", target.server()));
    let prepared = about::prepared(target);
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
        spool_dir: output.path(),
        out: output.path(),
        whole: false,
    };
    let mut session = Session::attach(subject, places)?;
    let trial = session.find_clients(TRIAL)?;
    let space = DiskSpace::expected(&trial, &order.schedule);
    say(&space.sentence(order.limit_bytes));
    space.require(machine::free_bytes(&output.path()).unwrap_or(u64::MAX))?;
    let mut scheduled = Scheduled {
        order,
        stop,
        say,
        session,
        target,
        output,
        began: Instant::now(),
    };
    scheduled.session.begin_unrecorded();
    scheduled.take_bursts()?;
    scheduled.finish(prepared)
}

/// Bursts by a schedule.
struct Scheduled<'a> {
    order: &'a Order,
    stop: &'a AtomicBool,
    say: &'a dyn Fn(&str),
    session: Session,
    target: &'a Target,
    output: &'a Output,
    began: Instant,
}

impl Scheduled<'_> {
    fn take_bursts(&mut self) -> Result<(), RecordError> {
        let schedule = self.order.schedule;
        for gap in schedule.gaps() {
            if self.over_after(gap, true) || self.full()? {
                break;
            }
            if let Err(error) = self.session.begin_burst(self.target.processes()) {
                if self.target.alive() {
                    return Err(error);
                }
                break;
            }
            self.over_after(schedule.burst, false);
            self.end_burst()?;
        }
        if self.target.alive() {
            self.session.end_unrecorded();
        }
        Ok(())
    }

    fn end_burst(&mut self) -> Result<(), RecordError> {
        let burst = self.session.end_burst(self.target.processes())?;
        if let Some(burst) = burst {
            (self.say)(&format!(
                "recording: {} events in the last burst",
                burst.events
            ));
        }
        Ok(())
    }

    /// Waits, at most until the recording is over, and may look for clients meanwhile; gives whether it is over.
    fn over_after(&mut self, time: Duration, look: bool) -> bool {
        let ends = self.began + self.order.schedule.length;
        let until = (Instant::now() + time).min(ends);
        while !self.stop.load(Ordering::Relaxed) && self.target.alive() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return until >= ends;
            }
            if look {
                self.session.look_for_clients();
            }
            thread::sleep(left.min(LOOKS_EACH));
        }
        true
    }

    fn full(&self) -> Result<bool, RecordError> {
        let reached = self.output.size_bytes().max(self.session.taken()?.bytes);
        let full = reached >= self.order.limit_bytes;
        if full {
            let limit = disk_space::megabytes(self.order.limit_bytes);
            (self.say)(&format!("the recording has reached its limit of {limit}"));
        }
        Ok(full)
    }

    fn finish(mut self, prepared: About) -> Result<About, RecordError> {
        (self.say)("decoding");
        self.session.finish(About {
            duration_s: self.began.elapsed().as_secs_f64(),
            ..prepared
        })
    }
}
