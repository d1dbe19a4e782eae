//! One recording: attaches, takes bursts, decodes, describes, detaches.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tierwise_record::capture::{Options, open_files};
use tierwise_record::{Recorder, measure_host};
use tierwise_recording::{About, ClientProgram, Role};

use crate::about;
use crate::decoder::Decoder;
use crate::devices::Devices;
use crate::disk_space::{self, DiskSpace};
use crate::files::Files;
use crate::output::Output;
use crate::rates::RateMeter;
use crate::sockets::Sockets;
use crate::target::{Target, Wanted};
use crate::tracing::Tracing;
use crate::{RecordError, Schedule, clients, event_cost, ledger, machine, paths, processes};

/// Bursts are kept in memory and read without delay; and the kernel takes 10 µs for each 4 KB it gives.
const BUFFER_BYTES: u64 = 16 << 20;
/// How often the kernel's buffers are emptied.
const POLL: Duration = Duration::from_millis(20);
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
    let about = About {
        host: measure_host(),
        ..about::prepared(target)
    };
    let event_cpu_ns = event_cost::measure_event_cpu_ns(&tracing.path(), &tracing.name);
    let files = files_of(target);
    let recorder = Arc::new(attach(target, tracing, &files, output)?);
    let _attached = Attached(&recorder);
    let trial = recorder.find_clients(TRIAL)?;
    let space = DiskSpace::expected(&trial, &order.schedule);
    say(&space.sentence(order.limit_bytes));
    space.require(machine::free_bytes(&output.path()).unwrap_or(u64::MAX))?;
    let mut session = Session {
        order,
        stop,
        say,
        decoder: Decoder::start(Arc::clone(&recorder), files),
        meter: RateMeter::start(&target.processes()),
        recorder: &recorder,
        target,
        output,
        began: Instant::now(),
        events: 0,
        bursts: 0,
        processes_bytes: 0,
        clients: Vec::new(),
    };
    session.take_bursts()?;
    session.finish(about, event_cpu_ns)
}

fn files_of(target: &Target) -> Files {
    let devices = Devices::mounted(target.mounts_of());
    let mut files = Files::new(devices, target.rules.clone(), target.root.clone());
    for file in target.processes().into_iter().flat_map(open_files) {
        files.of(&file.path);
    }
    files
}

fn attach(
    target: &Target,
    tracing: &Tracing,
    files: &Files,
    output: &Output,
) -> Result<Recorder, RecordError> {
    let options = Options {
        tracefs: tracing.path(),
        instance: tracing.name.clone(),
        pids: vec![target.pid],
        buffer_bytes: BUFFER_BYTES,
        poll: POLL,
        spool_dir: output.path(),
        disk_server_pids: Vec::new(),
    };
    let ranges = files.devices.ranges();
    Ok(Recorder::attach(
        options,
        target.rules.clone(),
        ranges,
        &output.path(),
    )?)
}

/// Detaches when it is dropped, also while the decoder still holds the recorder.
struct Attached<'a>(&'a Recorder);

impl Drop for Attached<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

struct Session<'a> {
    order: &'a Order,
    stop: &'a AtomicBool,
    say: &'a dyn Fn(&str),
    recorder: &'a Recorder,
    decoder: Decoder,
    target: &'a Target,
    output: &'a Output,
    meter: RateMeter,
    began: Instant,
    events: u64,
    bursts: u32,
    processes_bytes: u64,
    clients: Vec<ClientProgram>,
}

impl Session<'_> {
    fn take_bursts(&mut self) -> Result<(), RecordError> {
        let schedule = self.order.schedule;
        for gap in schedule.gaps() {
            if self.over_after(gap) || self.full() {
                break;
            }
            self.meter.end(&self.target.processes(), false);
            if let Err(error) = self.recorder.begin() {
                if self.target.alive() {
                    return Err(error.into());
                }
                break;
            }
            self.over_after(schedule.burst);
            self.end_burst()?;
        }
        if self.target.alive() {
            self.meter.end(&self.target.processes(), false);
        }
        Ok(())
    }

    fn end_burst(&mut self) -> Result<(), RecordError> {
        let burst = self.recorder.end(0.0)?;
        let pids = self.target.processes();
        self.processes_bytes = self.processes_bytes.max(processes::memory_bytes(&pids));
        self.meter.end(&pids, true);
        self.bursts += 1;
        // Seldom, because it reads every descriptor of the host.
        if self.bursts.is_power_of_two() {
            let seen = clients::clients_of(&pids, &Sockets::now());
            clients::merge(&mut self.clients, seen);
        }
        if let Some(burst) = burst {
            self.events += burst.events;
            (self.say)(&format!(
                "recording: {} events in the last burst",
                burst.events
            ));
            self.decoder.burst_ended(burst);
        }
        Ok(())
    }

    /// Waits, at most until the recording is over; gives whether it is over.
    fn over_after(&self, time: Duration) -> bool {
        let ends = self.began + self.order.schedule.length;
        let until = (Instant::now() + time).min(ends);
        while !self.stop.load(Ordering::Relaxed) && self.target.alive() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return until >= ends;
            }
            thread::sleep(left.min(LOOKS_EACH));
        }
        true
    }

    fn full(&self) -> bool {
        let reached = self
            .output
            .size_bytes()
            .max(disk_space::size_of(self.events));
        let full = reached >= self.order.limit_bytes;
        if full {
            let limit = disk_space::megabytes(self.order.limit_bytes);
            (self.say)(&format!("the recording has reached its limit of {limit}"));
        }
        full
    }

    fn finish(self, about: About, event_cpu_ns: f64) -> Result<About, RecordError> {
        let duration_s = self.began.elapsed().as_secs_f64();
        (self.say)("decoding");
        let files = self.decoder.finish()?;
        let sizes = |target: &Target| {
            let role_of = |path: &str| target.rules.role_of(path);
            paths::working_directory_sizes(target.pid, &target.root, role_of)
        };
        let known = self
            .target
            .rules
            .works_in_data_directory
            .then_some(self.target);
        let sizes = known.and_then(sizes);
        let about = About {
            duration_s,
            cost: Some(self.meter.cost(event_cpu_ns)),
            data_directory_bytes: sizes.as_ref().map(|sizes| sizes.all_bytes),
            role_bytes: sizes.map_or_else(Default::default, |sizes| sizes.role_bytes),
            ..about::completed(about, &files.devices, self.clients, self.processes_bytes)
        };
        Ok(self.recorder.finish(about)?)
    }
}
