//! A recording under way: bursts taken, decoded beside the database, and described. The caller decides when.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tierwise_recording::{About, ClientProgram, Machine, Rules};

use crate::database::clients::{clients_of, merge};
use crate::decoder::Decoder;
use crate::disk_space;
use crate::host::devices::Devices;
use crate::host::files::{Files, RoleOf};
use crate::host::processes::{self, open_files};
use crate::host::sockets::Sockets;
use crate::rates::RateMeter;
use crate::tracer::{Family, Options};
use crate::{BurstSummary, RecordError, Recorder, Trial, about};

/// How often the kernel's buffers are emptied.
const POLL: Duration = Duration::from_millis(20);
/// Between the first two looks for clients; twice as long after each further one.
const FIRST_LOOK: Duration = Duration::from_millis(200);
const LONGEST_BETWEEN_LOOKS: Duration = Duration::from_secs(30);

/// The database, and where its recording goes.
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

/// Where events come from and where they go.
pub struct Places {
    /// Root of a mounted tracefs.
    pub tracefs: PathBuf,
    /// Name of the tracer's instances.
    pub instance: String,
    /// Size of a buffer of the kernel for one core.
    pub buffer_bytes: u64,
    /// Directory for bursts that wait to be decoded.
    pub spool_dir: PathBuf,
    /// Directory of the recording, empty or new.
    pub out: PathBuf,
    /// Every event of the work is recorded: there is no unrecorded time in which the same work ran.
    pub whole: bool,
}

/// What a recording has taken so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Events of the burst under way, which memory holds until it is decoded.
    pub burst_events: u64,
    /// Estimated size of the recording.
    pub bytes: u64,
}

/// One recording, until [`Session::finish`]. Dropping it detaches.
pub struct Session {
    recorder: Arc<Recorder>,
    decoder: Option<Decoder>,
    meter: RateMeter,
    processes_bytes: u64,
    /// Events of the bursts that ended.
    events: u64,
    first_pid: Option<i32>,
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
    pub fn attach(subject: Subject, places: Places) -> Result<Self, RecordError> {
        let files = Files::new(subject.devices, subject.rules.clone(), subject.root);
        let mut files = files.with_roles(subject.role_of);
        for file in subject.pids.iter().flat_map(|&pid| open_files(pid)) {
            files.of(&file.path);
        }
        let servers = subject.disk_server_pids;
        let options = Options {
            tracefs: places.tracefs,
            instance: places.instance,
            pids: subject.pids.clone(),
            buffer_bytes: places.buffer_bytes,
            poll: POLL,
            spool_dir: places.spool_dir,
            disk_server_pids: servers.unwrap_or_else(|| files.devices.disk_servers()),
        };
        let ranges = files.devices.ranges();
        let recorder = Recorder::attach(options, subject.rules, ranges, &places.out)?;
        let recorder = Arc::new(recorder);
        Ok(Self {
            decoder: Some(Decoder::start(Arc::clone(&recorder), files)),
            meter: RateMeter::start(&subject.pids),
            recorder,
            processes_bytes: 0,
            events: 0,
            first_pid: subject.first_pid.or_else(|| subject.pids.first().copied()),
            pids: subject.pids,
            whole: places.whole,
            clients: Vec::new(),
            looks: (Instant::now(), FIRST_LOOK),
        })
    }

    /// Finds the clients by their wake-ups in a burst that is not kept.
    ///
    /// # Errors
    /// If the kernel refuses, or no process is left.
    pub fn find_clients(&self, duration: Duration) -> Result<Trial, RecordError> {
        Ok(self.recorder.find_clients(duration)?)
    }

    /// Follows the scheduling of these threads, which are clients, from the next burst on.
    ///
    /// # Errors
    /// If the recording has ended.
    pub fn set_clients(&self, tids: Vec<i32>) -> Result<(), RecordError> {
        Ok(self.recorder.set_clients(tids)?)
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
    ///
    /// # Errors
    /// If the kernel refuses, or no process is left.
    pub fn begin_burst(&mut self, pids: Vec<i32>) -> Result<(), RecordError> {
        self.pids = pids;
        self.recorder.set_processes(self.pids.clone())?;
        self.end_unrecorded();
        Ok(self.recorder.begin()?)
    }

    /// Ends a burst of processes that are these now; none if none was begun.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn end_burst(&mut self, pids: Vec<i32>) -> Result<Option<BurstSummary>, RecordError> {
        let burst = self.recorder.end()?;
        self.pids = pids;
        let held_bytes = processes::memory_bytes(&self.pids);
        self.processes_bytes = self.processes_bytes.max(held_bytes);
        self.meter.end(&self.pids, true);
        self.events += burst.as_ref().map_or(0, |burst| burst.events);
        if let (Some(decoder), Some(burst)) = (&self.decoder, &burst) {
            decoder.burst_ended(burst.clone());
        }
        Ok(burst)
    }

    /// Events of the burst under way, and the size that the recording will have with them.
    ///
    /// # Errors
    /// If the recording has ended.
    pub fn taken(&self) -> Result<Taken, RecordError> {
        let burst_events = self.recorder.burst_events()?;
        Ok(Taken {
            burst_events,
            bytes: disk_space::size_of(self.events + burst_events),
        })
    }

    /// Writes the recording so far to another directory; `about` is completed.
    ///
    /// # Errors
    /// If the file system refuses, or the recording has ended.
    pub fn snapshot(&mut self, about: About, directory: &Path) -> Result<About, RecordError> {
        let files = self.decoded()?;
        let about = self.completed(about, &files);
        self.decoder = Some(Decoder::start(Arc::clone(&self.recorder), files));
        Ok(self.recorder.snapshot(about, directory)?)
    }

    /// Detaches, decodes the bursts that wait, and writes the recording; `about` is completed.
    ///
    /// # Errors
    /// If the file system refuses, or it was ended before.
    pub fn finish(&mut self, about: About) -> Result<About, RecordError> {
        let files = self.decoded()?;
        let about = self.completed(about, &files);
        Ok(self.recorder.finish(about)?)
    }

    /// Detaches, and leaves the bursts that wait undecoded. No error if already detached.
    pub fn close(&mut self) {
        self.recorder.close();
        if let Some(decoder) = self.decoder.take() {
            decoder.abandon();
        }
    }

    fn decoded(&mut self) -> Result<Files, RecordError> {
        let ended = || RecordError::new("the recording has ended", "attach again for another");
        self.decoder.take().ok_or_else(ended)?.finish()
    }

    fn completed(&self, about: About, files: &Files) -> About {
        let uncompared = RateMeter::start(&[]);
        let meter = if self.whole { &uncompared } else { &self.meter };
        let first = self.first_pid;
        let sizes = first.and_then(|pid| files.working_directory_sizes(pid));
        let mut warnings = about.warnings;
        warnings.extend(about::warnings_of(&files.devices));
        About {
            clients: self.clients.clone(),
            machine: Machine {
                processes_bytes: self.processes_bytes,
                ..about.machine
            },
            devices: files.devices.described(),
            cost: Some(meter.cost()),
            data_directory_bytes: sizes.as_ref().map(|sizes| sizes.all_bytes),
            role_bytes: sizes.map_or_else(Default::default, |sizes| sizes.role_bytes),
            warnings,
            ..about
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}
