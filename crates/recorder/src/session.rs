//! A recording under way: bursts taken, decoded beside the database, and described. The caller decides when.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use tierwise_recording::{About, ClientProgram, Machine, Rules};

use crate::UserError;
use crate::database::clients::{clients_of, merge};
use crate::decoding::{Decoding, DecodingThread};
use crate::host::devices::Devices;
use crate::host::files::{Files, RoleOf};
use crate::host::machine;
use crate::host::processes::{self, Family, Identity, open_files};
use crate::host::sockets::Sockets;
use crate::rates::RateMeter;
use crate::schedule::size_of;
use crate::tracer::{BurstSummary, BurstTracer, Places, clients_in};

/// Between the first two looks for clients; twice as long after each further one.
const FIRST_LOOK: Duration = Duration::from_millis(200);
const LONGEST_BETWEEN_LOOKS: Duration = Duration::from_secs(30);

/// The database that is recorded.
pub struct Subject {
    /// Its first process, if that is known.
    pub first_pid: Option<i32>,
    /// Its processes when the recording begins; their children belong to it too.
    pub pids: Vec<i32>,
    /// Rules of its files and threads.
    pub rules: Rules,
    /// Roles of its files in place of those of the rules.
    pub role_of: Option<RoleOf>,
    /// Root of its files, as seen by this process; a container has its own.
    pub root: PathBuf,
    /// Devices that it may use.
    pub devices: Devices,
    /// Servers of emulated disks, whose processor time counts as storage; by default those of the disks that it uses.
    pub disk_server_pids: Option<Vec<i32>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Events of the burst under way, which memory holds until it is decoded.
    pub burst_events: u64,
    /// Estimated size of the recording.
    pub bytes: u64,
}

/// One recording, until [`Session::finish`]. Dropping it detaches.
///
/// A method fails if the kernel or the file system refuses, no process is left to record, or the recording has ended.
pub struct Session {
    tracer: Option<BurstTracer>,
    decoder: Option<DecodingThread>,
    meter: RateMeter,
    processes_bytes: u64,
    /// Events of the bursts that ended.
    events: u64,
    /// The first process of the server, if that is known.
    server: Option<Identity>,
    /// As the server sees it; it is known only while the server lives.
    data_directory: Option<PathBuf>,
    /// Cores that the server may use.
    core_limit: Option<f64>,
    pids: Vec<i32>,
    whole: bool,
    clients: Vec<ClientProgram>,
    /// When to look for clients again, and the time between the last two looks.
    looks: (Instant, Duration),
}

impl Session {
    /// Attaches; nothing is traced yet.
    ///
    /// # Errors
    /// If nothing can be traced here, or the file system refuses.
    pub fn attach(subject: Subject, places: Places) -> Result<Self, UserError> {
        let mut files = Files::new(
            subject.devices,
            subject.rules,
            subject.role_of,
            subject.root,
        );
        for file in subject.pids.iter().flat_map(|&pid| open_files(pid)) {
            files.of(&file.path);
        }
        let first = subject.first_pid.or_else(|| subject.pids.first().copied());
        let data_directory = first.and_then(|pid| files.data_directory(pid));
        let servers = subject.disk_server_pids;
        let servers = servers.unwrap_or_else(|| files.devices.disk_servers());
        let whole = places.whole;
        let tracer = BurstTracer::attach(&places, subject.pids.clone(), servers)?;
        let decoding = Decoding::begin(files, &places.out)?;
        Ok(Self {
            tracer: Some(tracer),
            decoder: Some(DecodingThread::start(decoding)?),
            meter: RateMeter::start(&subject.pids),
            processes_bytes: 0,
            events: 0,
            server: subject.first_pid.and_then(Identity::of),
            data_directory,
            core_limit: subject.first_pid.and_then(machine::core_limit),
            pids: subject.pids,
            whole,
            clients: Vec::new(),
            looks: (Instant::now(), FIRST_LOOK),
        })
    }

    /// Finds the clients by their wake-ups in a burst that is not kept, and follows them from now on.
    pub fn find_clients(&mut self, duration: Duration) -> Result<BurstSummary, UserError> {
        let tracer = self.tracer()?;
        tracer.begin()?;
        thread::sleep(duration);
        let Some(burst) = tracer.end()? else {
            return Ok(BurstSummary::default());
        };
        let clients = clients_in(&burst);
        let summary = burst.summary(clients.len());
        tracer.set_clients(clients);
        Ok(summary)
    }

    /// Follows the scheduling of these threads, which are clients, from the next burst on.
    pub fn set_clients(&mut self, tids: Vec<i32>) -> Result<(), UserError> {
        self.tracer()?.set_clients(tids);
        Ok(())
    }

    /// Looks for the programs that hold the sessions, unless the last look was not long ago: each reads every descriptor
    /// of the host.
    pub fn look_for_clients(&mut self) {
        let (due, each) = self.looks;
        let now = Instant::now();
        if now < due {
            return;
        }
        let pids = Family::now().with_descendants(&self.pids);
        merge(&mut self.clients, clients_of(&pids, &Sockets::now()));
        self.looks = (now + each, (2 * each).min(LONGEST_BETWEEN_LOOKS));
    }

    /// Time without recording begins again: what passed since the last burst does not count.
    pub fn begin_unrecorded(&mut self) {
        self.meter.restart(&self.pids);
    }

    /// Time without recording ends.
    pub fn end_unrecorded(&mut self) {
        self.meter.end(&self.pids, false);
    }

    /// Begins a burst of these processes.
    pub fn begin_burst(&mut self, pids: Vec<i32>) -> Result<(), UserError> {
        self.pids.clone_from(&pids);
        self.tracer()?.set_processes(pids);
        self.end_unrecorded();
        self.tracer()?.begin()?;
        self.meter.restart(&self.pids); // Switching on is no part of the burst.
        Ok(())
    }

    /// Ends a burst of processes that are these now; none if none was begun.
    pub fn end_burst(&mut self, pids: Vec<i32>) -> Result<Option<BurstSummary>, UserError> {
        if self.tracer()?.in_burst() {
            self.meter.end(&pids, true); // Switching off is none either.
        }
        self.pids = pids;
        let burst = self.tracer()?.end()?;
        let held_bytes = processes::memory_bytes(&self.pids);
        self.processes_bytes = self.processes_bytes.max(held_bytes);
        self.meter.restart(&self.pids);
        let Some(burst) = burst else {
            return Ok(None);
        };
        let summary = burst.summary(burst.clients.len());
        self.events += summary.events;
        if let Some(decoder) = &self.decoder {
            decoder.burst_ended(burst);
        }
        Ok(Some(summary))
    }

    /// Events of the burst under way, and the size that the recording will have with them.
    pub fn taken(&self) -> Result<Taken, UserError> {
        let burst_events = self.tracer.as_ref().ok_or_else(ended)?.events();
        Ok(Taken {
            burst_events,
            bytes: size_of(self.events + burst_events),
        })
    }

    /// Writes the recording so far to another directory; `about` is completed.
    pub fn snapshot(&mut self, about: About, directory: &Path) -> Result<About, UserError> {
        let mut decoding = self.decoded()?;
        let mut about = self.completed(about, &decoding.files);
        let written = decoding.snapshot(&mut about, directory);
        self.decoder = Some(DecodingThread::start(decoding)?);
        written?;
        Ok(about)
    }

    /// Detaches, decodes the bursts that wait, and writes the recording; `about` is completed.
    pub fn finish(&mut self, about: About) -> Result<About, UserError> {
        let decoding = self.decoded()?;
        let mut about = self.completed(about, &decoding.files);
        self.tracer = None;
        decoding.finish(&mut about)?;
        Ok(about)
    }

    /// Detaches, and leaves the bursts that wait undecoded. No error if already detached.
    pub fn close(&mut self) {
        self.tracer = None;
        if let Some(decoder) = self.decoder.take() {
            decoder.abandon();
        }
    }

    fn tracer(&mut self) -> Result<&mut BurstTracer, UserError> {
        self.tracer.as_mut().ok_or_else(ended)
    }

    fn decoded(&mut self) -> Result<Decoding, UserError> {
        self.decoder.take().ok_or_else(ended)?.finish()
    }

    fn completed(&self, about: About, files: &Files) -> About {
        let uncompared = RateMeter::start(&[]);
        let meter = if self.whole { &uncompared } else { &self.meter };
        let directory = self.data_directory.as_deref();
        let sizes = directory.and_then(|directory| files.data_sizes(directory));
        let mut warnings = about.warnings;
        if self.server.as_ref().is_some_and(|server| !server.alive()) {
            let ended = "the recorded process ended, as where a server stops or restarts";
            warnings.push(format!("{ended}: nothing is recorded from then on"));
        }
        warnings.extend(files.devices.warnings());
        let cores = about.machine.cores;
        let core_limit = self.core_limit.filter(|limit| *limit < f64::from(cores));
        let mut about = About {
            clients: self.clients.clone(),
            machine: Machine {
                core_limit,
                processes_bytes: self.processes_bytes,
                ..about.machine
            },
            devices: files.devices.described(),
            cost: Some(meter.cost()),
            data_directory_bytes: sizes.as_ref().map(|sizes| sizes.all_bytes),
            role_bytes: sizes.map_or_else(Default::default, |sizes| sizes.role_bytes),
            warnings,
            ..about
        };
        if let Some(limit) = core_limit {
            let answered = match about.server_cores() {
                fewer if fewer < cores => format!("answers count with {fewer}"),
                _ => format!(
                    "clients run beside it, so that answers count with all but for predict --cores {}",
                    limit.ceil()
                ),
            };
            about.warnings.push(format!(
                "the server may use {limit} of the {cores} cores, by its affinity or control group: {answered}"
            ));
        }
        about
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

fn ended() -> UserError {
    UserError::new("the recording has ended", "attach again for another")
}
