//! A recording under way: bursts taken, decoded beside the database, and described. The caller decides when.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use tierwise_recording::{About, ClientProgram, Machine, Rules};

use crate::UserError;
use crate::database::clients::{client_programs_of_server, merge_client_programs};
use crate::database::settings::replication_slots;
use crate::decoding::{DecodingThread, RecordingDecoder};
use crate::host::control_groups::{IoLimit, process_core_limit, process_io_limits};
use crate::host::devices::DiscoveredDevices;
use crate::host::files::{FileDescriber, RoleLookup};
use crate::host::machine;
use crate::host::paths::directory_entries;
use crate::host::processes::{self, ProcessIdentity, ProcessTree, open_files};
use crate::host::sockets::SocketTable;
use crate::recording_rate::RecordingRateMeter;
use crate::recording_window::{BurstTaker, RecordedAmount, RecordingControl, RecordingCourse};
use crate::schedule::{BurstSchedule, RecordingSpaceNeed, megabytes_text, recording_bytes};
use crate::tracer::{
    BurstSummary, BurstTracer, TracerStorage, client_threads_in_burst, require_tracing_possible,
};

/// Between the first two looks for clients; twice as long after each further one.
const FIRST_LOOK: Duration = Duration::from_millis(200);
const LONGEST_BETWEEN_LOOKS: Duration = Duration::from_secs(30);

/// The database that is recorded.
pub struct RecordedDatabase {
    /// Its first process, if that is known.
    pub first_pid: Option<i32>,
    /// Its processes when the recording begins; their children belong to it too.
    pub pids: Vec<i32>,
    /// Rules of its files and threads.
    pub rules: Rules,
    /// Roles of its files in place of those of the rules.
    pub role_of: Option<RoleLookup>,
    /// Root of its files, as seen by this process; a container has its own.
    pub root: PathBuf,
    /// Devices that it may use.
    pub devices: DiscoveredDevices,
    /// Servers of emulated disks, whose processor time counts as storage; by default those of the disks that it uses.
    pub disk_server_pids: Option<Vec<i32>>,
}

/// One recording, until [`Session::finish`]. Dropping it detaches.
///
/// A method fails if the kernel or the file system refuses, no process is left to record, or the recording has ended.
pub struct Session {
    tracer: Option<BurstTracer>,
    decoder: Option<DecodingThread>,
    meter: RecordingRateMeter,
    processes_bytes: u64,
    schedule: BurstSchedule,
    course: RecordingCourse,
    out: PathBuf,
    /// Events and length of the bursts that ended, and when the burst under way began.
    events: u64,
    recorded: Duration,
    burst_began: Option<Instant>,
    /// The first process of the server, if that is known.
    server: Option<ProcessIdentity>,
    /// As the server sees it; it is known only while the server lives.
    data_directory: Option<PathBuf>,
    /// Cores that the server may use.
    core_limit: Option<f64>,
    io_limits: Vec<IoLimit>,
    pids: Vec<i32>,
    /// The processes that were there when the recording began.
    first_pids: Vec<ProcessIdentity>,
    clients: Vec<ClientProgram>,
    /// When to look for clients again, and the time between the last two looks.
    looks: (Instant, Duration),
}

impl Session {
    /// Attaches; nothing is traced yet.
    ///
    /// # Errors
    /// If nothing can be traced here, or the file system refuses.
    pub fn attach(
        subject: RecordedDatabase,
        places: TracerStorage,
        schedule: BurstSchedule,
    ) -> Result<Self, UserError> {
        require_tracing_possible()?;
        let mut files = FileDescriber::new(
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
        let tracer = BurstTracer::attach(&places, subject.pids.clone(), servers)?;
        let decoding = RecordingDecoder::begin(files, &places.out)?;
        Ok(Self {
            tracer: Some(tracer),
            decoder: Some(DecodingThread::start(decoding)?),
            meter: RecordingRateMeter::start(&subject.pids),
            processes_bytes: 0,
            schedule,
            course: RecordingCourse::default(),
            out: places.out,
            events: 0,
            recorded: Duration::ZERO,
            burst_began: None,
            server: subject.first_pid.and_then(ProcessIdentity::of),
            data_directory,
            core_limit: subject.first_pid.and_then(process_core_limit),
            io_limits: first.map(process_io_limits).unwrap_or_default(),
            first_pids: subject
                .pids
                .iter()
                .filter_map(|&pid| ProcessIdentity::of(pid))
                .collect(),
            pids: subject.pids,
            clients: Vec::new(),
            looks: (Instant::now(), FIRST_LOOK),
        })
    }

    /// Takes bursts by the schedule for this time, by default that of the schedule, until the control ends it or no
    /// process of the beginning is left. Further windows belong to the same recording.
    pub fn run(
        &mut self,
        length: Option<Duration>,
        control: &dyn RecordingControl,
    ) -> Result<(), UserError> {
        let (mut course, schedule) = (std::mem::take(&mut self.course), self.schedule);
        let ended = course.run(self, &schedule, length, control);
        self.course = course;
        ended
    }

    /// Whether one of the processes of the beginning still runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.first_pids.iter().any(ProcessIdentity::alive)
    }

    /// Whether the recording has reached its limit: no further burst is taken.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.course.full_after.is_some()
    }

    /// Finds the clients by their wake-ups in a burst that is not kept, and follows them from now on.
    fn find_clients(&mut self, duration: Duration) -> Result<BurstSummary, UserError> {
        let tracer = self.tracer()?;
        tracer.begin()?;
        thread::sleep(duration);
        let Some(burst) = tracer.end()? else {
            return Ok(BurstSummary::default());
        };
        let clients = client_threads_in_burst(&burst);
        let summary = burst.summary(clients.len());
        tracer.set_clients(clients);
        Ok(summary)
    }

    /// Follows the scheduling of these threads, which are clients, from the next burst on.
    pub fn set_clients(&mut self, tids: Vec<i32>) -> Result<(), UserError> {
        self.tracer()?.set_clients(tids);
        Ok(())
    }

    /// Begins a burst of these processes.
    pub fn begin_burst(&mut self, pids: Vec<i32>) -> Result<(), UserError> {
        self.pids.clone_from(&pids);
        self.tracer()?.set_processes(pids);
        self.meter.end(&self.pids, false);
        self.tracer()?.begin()?;
        self.burst_began = Some(Instant::now());
        self.meter.restart(&self.pids); // Switching on is no part of the burst.
        Ok(())
    }

    /// Ends a burst of processes that are these now; none if none was begun.
    pub fn end_burst(&mut self, pids: Vec<i32>) -> Result<Option<BurstSummary>, UserError> {
        if self.tracer()?.in_burst() {
            self.meter.end(&pids, true); // Switching off is none either.
        }
        self.pids = pids;
        self.recorded += self
            .burst_began
            .take()
            .map_or(Duration::ZERO, |began| began.elapsed());
        let burst = self.tracer()?.end()?;
        let held_bytes = processes::processes_memory_bytes(&self.pids);
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
        self.tracer.as_mut().ok_or_else(recording_ended_error)
    }

    fn decoded(&mut self) -> Result<RecordingDecoder, UserError> {
        self.decoder
            .take()
            .ok_or_else(recording_ended_error)?
            .finish()
    }

    fn completed(&self, about: About, files: &FileDescriber) -> About {
        let uncompared = RecordingRateMeter::start(&[]);
        let compared = !self.schedule.is_whole() || self.course.is_sampled;
        let meter = if compared { &self.meter } else { &uncompared };
        let directory = self.data_directory.as_deref();
        let sizes = directory.and_then(|directory| files.data_sizes(directory));
        let mut warnings = about.warnings;
        if self.server.as_ref().is_some_and(|server| !server.alive()) {
            let ended = "the recorded process ended, as where a server stops or restarts";
            warnings.push(format!("{ended}: nothing is recorded from then on"));
        }
        warnings.extend(self.size_limit_warning());
        warnings.extend(memory_limit_warning(&about.machine));
        warnings.extend(files.devices.warnings());
        let limited = files.devices.limited(&self.io_limits);
        let cores = about.machine.cores;
        let core_limit = self.core_limit.filter(|limit| *limit < f64::from(cores));
        let mut about = About {
            clients: self.clients.clone(),
            machine: Machine {
                core_limit,
                io_limits: limited.iter().map(ToString::to_string).collect(),
                processes_bytes: self.processes_bytes,
                ..about.machine
            },
            devices: files.devices.described(),
            cost: Some(meter.cost()),
            replication_slots: directory
                .and_then(|directory| replication_slots(directory, &files.rules, &files.root)),
            data_directory_bytes: sizes.as_ref().map(|sizes| sizes.all_bytes),
            role_bytes: sizes.map_or_else(Default::default, |sizes| sizes.role_bytes),
            warnings,
            ..about
        };
        if let Some(limit) = core_limit {
            let answered = match about.server_cores() {
                fewer if fewer < cores => format!("answers count with {fewer}"),
                _ if limit < 1.0 => {
                    "answers count with all, and no number of --cores is as few".to_owned()
                }
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

/// What a control group leaves the server of the machine's memory.
fn memory_limit_warning(machine: &Machine) -> Option<String> {
    let (left, installed) = (machine.memory_bytes, machine::installed_memory_bytes()?);
    let gib = |bytes: u64| bytes as f64 / (1_u64 << 30) as f64;
    (left < installed).then(|| {
        format!(
            "the server's control group leaves it {:.2} of {:.2} GiB of memory: answers count with these, and \
             more memory is first a higher limit",
            gib(left),
            gib(installed)
        )
    })
}

impl Session {
    fn processes(&self, control: &dyn RecordingControl) -> Vec<i32> {
        let first = self.first_pids.iter().filter(|process| process.alive());
        let first = first.map(|process| process.pid);
        let default = || ProcessTree::now().with_descendants(&first.collect::<Vec<_>>());
        control.processes().unwrap_or_else(default)
    }

    /// What the limit of its size changed.
    fn size_limit_warning(&self) -> Option<String> {
        let limit = megabytes_text(self.schedule.limit_bytes);
        if let Some(after) = self.course.full_after {
            let after_s = after.as_secs_f64();
            return Some(format!(
                "recording ended early, after {after_s:.0} s, at its limit of {limit}"
            ));
        }
        let share = self.recorded.as_secs_f64() / self.course.elapsed.as_secs_f64().max(1e-9);
        self.course.is_sampled.then(|| {
            format!(
                "events were taken in {:.1} % of the time instead of {:.0} %, so that the recording stays below its \
                 limit of {limit}",
                100.0 * share,
                100.0 * self.schedule.duty
            )
        })
    }
}

impl BurstTaker for Session {
    fn try_out(&mut self, trial: Duration, length: Option<Duration>) -> Result<String, UserError> {
        let summary = self.find_clients(trial)?;
        let Some(length) = length else {
            return Ok("recording".to_owned());
        };
        let space = RecordingSpaceNeed::expected(&summary, &self.schedule, length);
        space.require(machine::free_bytes(&self.out).unwrap_or(u64::MAX))?;
        Ok(space.sentence())
    }

    fn begin_unrecorded(&mut self) {
        self.meter.restart(&self.pids);
    }

    fn end_unrecorded(&mut self) {
        self.meter.end(&self.pids, false);
    }

    fn begin(&mut self, control: &dyn RecordingControl) -> Result<(), UserError> {
        if let Some(clients) = control.clients() {
            self.set_clients(clients)?;
        }
        let pids = self.processes(control);
        self.begin_burst(pids)
    }

    fn end(&mut self, control: &dyn RecordingControl) -> Result<u64, UserError> {
        let pids = self.processes(control);
        let burst = self.end_burst(pids)?;
        Ok(burst.map_or(0, |burst| burst.events))
    }

    /// Each look reads every descriptor of the host: none if the last was not long ago.
    fn look_for_clients(&mut self) {
        let (due, each) = self.looks;
        let now = Instant::now();
        if now < due {
            return;
        }
        let pids = ProcessTree::now().with_descendants(&self.pids);
        merge_client_programs(
            &mut self.clients,
            client_programs_of_server(&pids, &SocketTable::now()),
        );
        self.looks = (now + each, (2 * each).min(LONGEST_BETWEEN_LOOKS));
    }

    fn taken(&self) -> Result<RecordedAmount, UserError> {
        let burst_events = self
            .tracer
            .as_ref()
            .ok_or_else(recording_ended_error)?
            .events();
        let under_way = self.burst_began.map(|began| began.elapsed());
        let files =
            directory_entries(&self.out).filter_map(|file| Some(file.metadata().ok()?.len()));
        Ok(RecordedAmount {
            burst_events,
            bytes: recording_bytes(self.events + burst_events).max(files.sum()),
            recorded: self.recorded + under_way.unwrap_or_default(),
        })
    }

    fn alive(&self) -> bool {
        self.is_alive()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

fn recording_ended_error() -> UserError {
    UserError::new("the recording has ended", "attach again for another")
}
