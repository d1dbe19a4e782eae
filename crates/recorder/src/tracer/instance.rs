//! Private instances of the kernel's tracer: each has a ring buffer and switches of its own, and is removed at the end.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::ops::Sub;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::param::page_size;
use rustix::system::sysinfo;

use super::burst_tracer::Places;
use super::decode::Decoder;
use crate::UserError;
use crate::event::{EventKind, Request};
use crate::tracer::burst_tracer;
use crate::tracer::decode::{
    COMPLETION, DEVICES, Format, Meaning, RESULTS, SCHEDULING, SYSTEM_CALLS,
};
use crate::tracer::raw_burst::Records;

const OTHER_KERNEL: &str =
    "record on a kernel of 5.10 or later with event tracing (CONFIG_FTRACE_SYSCALLS)";

/// One instance; what it switched on is off again when this is dropped.
struct Instance {
    directory: PathBuf,
    enabled: Vec<PathBuf>,
    pipes: Vec<Pipe>,
}

#[derive(Clone)]
pub struct Pipe {
    pub cpu: u16,
    /// `trace_pipe_raw`: every read gives a page, or would block.
    pub file: Arc<File>,
}

impl Instance {
    /// Makes one that is switched off, with `buffer_bytes` a core.
    fn create(tracefs: &Path, name: &str, buffer_bytes: u64) -> Result<Self, UserError> {
        let directory = tracefs.join("instances").join(name);
        fs::create_dir(&directory).map_err(|error| refused(&directory, &error))?;
        let mut instance = Self {
            directory,
            enabled: Vec::new(),
            pipes: Vec::new(),
        };
        instance.set("tracing_on", "0")?;
        instance.set("trace_clock", "mono")?;
        instance.set("buffer_size_kb", &(buffer_bytes >> 10).to_string())?;
        // A full buffer drops the newest events, so that the kept ones have no gaps; it costs less too.
        instance.set("options/overwrite", "0")?;
        for cpu in online_cpus() {
            instance.open_pipe(cpu)?;
        }
        Ok(instance)
    }

    fn open_pipe(&mut self, cpu: u16) -> Result<(), UserError> {
        let path = self.path(&format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let mut options = OpenOptions::new();
        let opened = options
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&path);
        let file = Arc::new(opened.map_err(|error| refused(&path, &error))?);
        self.pipes.push(Pipe { cpu, file });
        Ok(())
    }

    /// Plans to switch on a tracepoint `SYSTEM/NAME`; false if this kernel lacks it.
    fn add(&mut self, event: &str, meaning: Meaning, decoder: &mut Decoder) -> bool {
        let format = Format::read(&self.directory, event);
        let known = format.is_some_and(|format| decoder.learn(meaning, &format));
        if known {
            self.enabled
                .push(self.path(&format!("events/{event}/enable")));
        }
        known
    }

    /// System calls by tracepoints of their own; they cost less than one for all with a filter.
    fn add_calls(&mut self, decoder: &mut Decoder) -> Result<(), UserError> {
        let mut known = 0;
        for call in SYSTEM_CALLS.split(' ') {
            let entry = format!("syscalls/sys_enter_{call}");
            let exit = format!("syscalls/sys_exit_{call}");
            known += usize::from(self.add(&entry, Meaning::Enter, decoder));
            self.add(&exit, Meaning::Exit, decoder);
        }
        if known == 0 {
            return Err(lacks("syscalls"));
        }
        for (calls, filter) in RESULTS {
            for call in calls.split(' ') {
                let exit = format!("syscalls/sys_exit_{call}");
                if self.add(&exit, Meaning::Exit, decoder) {
                    self.set(&format!("events/{exit}/filter"), filter)?;
                }
            }
        }
        Ok(())
    }

    /// Follows the threads that followed ones start.
    fn follow_forks(&self) -> Result<(), UserError> {
        self.set("options/event-fork", "1")
    }

    /// Traces these threads besides those that it traces already; the kernel drops the ones that end.
    fn follow(&self, tids: &[i32]) -> Result<(), UserError> {
        let path = self.path("set_event_pid");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let known = text.lines().filter_map(|line| line.trim().parse().ok());
        let known: HashSet<i32> = known.collect();
        let missing = tids.iter().filter(|tid| !known.contains(tid));
        let list: String = missing.map(|tid| format!("{tid}\n")).collect();
        if list.is_empty() {
            return Ok(());
        }
        // Each write waits for all cores to see it, some 30 ms, so all threads share one write.
        let opened = OpenOptions::new().append(true).open(&path);
        opened
            .and_then(|mut file| file.write_all(list.as_bytes()))
            .map_err(|error| refused(&path, &error))
    }

    /// Switches all planned tracepoints on; nothing is recorded before [`Self::record`].
    fn enable(&self) -> Result<(), UserError> {
        for path in &self.enabled {
            fs::write(path, "1").map_err(|error| refused(path, &error))?;
        }
        Ok(())
    }

    /// Switches all tracepoints off and follows no thread, so that tracing has no cost for the machine.
    ///
    /// As long as threads are followed, the kernel checks at every switch and wake-up whether it is one of theirs.
    fn disable(&self) -> Result<(), UserError> {
        self.set("events/enable", "0")?;
        self.set("set_event_pid", "")
    }

    fn record(&self, on: bool) -> Result<(), UserError> {
        self.set("tracing_on", if on { "1" } else { "0" })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn set(&self, name: &str, value: &str) -> Result<(), UserError> {
        let path = self.path(name);
        fs::write(&path, value).map_err(|error| refused(&path, &error))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.pipes.clear();
        // After a failure here the instance stays in the ledger, where the next start finds it.
        let _ = self.record(false);
        let _ = self.disable();
        let _ = fs::remove_dir(&self.directory);
    }
}

fn refused(path: &Path, error: &io::Error) -> UserError {
    let fix = match error.kind() {
        io::ErrorKind::PermissionDenied => "record as root",
        io::ErrorKind::NotFound => OTHER_KERNEL,
        _ => "see whether another tracer holds it, or the kernel locks tracing down",
    };
    UserError::new(format!("tracing: {}: {error}", path.display()), fix)
}

fn lacks(event: &str) -> UserError {
    UserError::new(
        format!("this kernel has no tracepoint {event}"),
        OTHER_KERNEL,
    )
}

/// Events of some instances since they were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub read: u64,
    /// Events that were dropped.
    pub lost: u64,
}

impl Counts {
    fn add(&mut self, stats: &str) {
        for (name, figure) in stats.lines().filter_map(|line| line.split_once(':')) {
            let figure: u64 = figure.trim().parse().unwrap_or_default();
            match name {
                "read events" => self.read += figure,
                "overrun" | "commit overrun" | "dropped events" => self.lost += figure,
                _ => {}
            }
        }
    }
}

impl Sub for Counts {
    type Output = Self;

    /// The increase; 0 where the kernel shows less than before, as it may while events are being read.
    fn sub(self, before: Self) -> Self {
        Self {
            read: self.read.saturating_sub(before.read),
            lost: self.lost.saturating_sub(before.lost),
        }
    }
}

fn online_cpus() -> Vec<u16> {
    let list = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    parse_cpus(list.trim()).unwrap_or_else(|| vec![0])
}

/// The kernel's notation of sets: `0-3,8`.
fn parse_cpus(list: &str) -> Option<Vec<u16>> {
    let mut cpus = Vec::new();
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cpus.extend(first.parse::<u16>().ok()?..=last.parse::<u16>().ok()?);
    }
    Some(cpus)
}

/// The three instances that a tracer needs, as one: calls of the recorded threads; scheduling of these and of their
/// clients; requests of the whole machine, since they complete under any thread.
pub struct Tracers {
    calls: Instance,
    scheduling: Instance,
    devices: Instance,
}

/// Fraction of the others' buffer size for the events of devices: requests are far fewer than calls and switches;
/// allocated memory costs time, used or not.
const DEVICES_SHARE: u64 = 4;

impl Tracers {
    /// Makes them, switched off; `decoder` learns their records.
    pub fn create(places: &Places, decoder: &mut Decoder) -> Result<Self, UserError> {
        let memory = sysinfo();
        let memory_bytes = memory.totalram as u64 * u64::from(memory.mem_unit);
        let most = memory_bytes / 16 / (3 * online_cpus().len() as u64);
        let room = places.buffer_bytes.min(most);
        let create = |kind: &str, bytes: u64| {
            let name = format!("{}-{kind}", places.instance);
            Instance::create(&places.tracefs, &name, bytes)
        };
        let mut calls = create("calls", room)?;
        calls.add_calls(decoder)?;
        calls.follow_forks()?;
        let mut scheduling = create("sched", room)?;
        for (event, meaning) in SCHEDULING {
            if !scheduling.add(event, meaning, decoder) {
                return Err(lacks(event));
            }
        }
        scheduling.follow_forks()?;
        let mut devices = create("block", room / DEVICES_SHARE)?;
        for (event, meaning) in DEVICES {
            // A kernel without io_uring, or with its older names, has fewer.
            devices.add(event, meaning, decoder);
        }
        Ok(Self {
            calls,
            scheduling,
            devices,
        })
    }

    fn all(&self) -> [&Instance; 3] {
        [&self.calls, &self.scheduling, &self.devices]
    }

    /// Traces these threads; of clients, the scheduling alone.
    pub fn follow(&self, tids: &[i32], clients: &[i32]) -> Result<(), UserError> {
        self.calls.follow(tids)?;
        self.scheduling.follow(&[tids, clients].concat())
    }

    /// Switches the tracepoints on; nothing is recorded before [`Self::record`].
    pub fn enable(&self) -> Result<(), UserError> {
        self.all().into_iter().try_for_each(Instance::enable)
    }

    pub fn record(&self) -> Result<(), UserError> {
        let mut all = self.all().into_iter();
        all.try_for_each(|instance| instance.record(true))
    }

    pub fn switch_off(&self) -> Result<(), UserError> {
        let mut all = self.all().into_iter();
        all.try_for_each(|instance| instance.record(false))?;
        self.all().into_iter().try_for_each(Instance::disable)
    }

    pub fn pipes(&self) -> Vec<Pipe> {
        let pipes = self.all().into_iter().flat_map(|instance| &instance.pipes);
        pipes.cloned().collect()
    }

    /// Events of all instances since they were made; none if a count cannot be read, since the others alone would look
    /// like a decrease.
    pub fn counts(&self) -> Option<Counts> {
        let mut counts = Counts::default();
        for instance in self.all() {
            for pipe in &instance.pipes {
                let path = instance.path(&format!("per_cpu/cpu{}/stats", pipe.cpu));
                counts.add(&fs::read_to_string(path).ok()?);
            }
        }
        Some(counts)
    }
}

/// Completed requests to block devices, of the whole machine, read on demand.
pub struct Completions {
    instance: Instance,
    decoder: Decoder,
}

/// Buffer for each core: some 70,000 requests, between two reads.
const COMPLETIONS_BYTES: u64 = 4 << 20;

impl Completions {
    /// Makes the instance of this name; nothing is recorded yet.
    pub fn attach(tracefs: &Path, name: &str) -> Result<Self, UserError> {
        let mut decoder = Decoder::default();
        let mut instance = Instance::create(tracefs, name, COMPLETIONS_BYTES)?;
        if !instance.add(COMPLETION, Meaning::Complete, &mut decoder) {
            return Err(lacks(COMPLETION));
        }
        instance.enable()?;
        Ok(Self { instance, decoder })
    }

    /// Starts or stops recording; recorded events stay until they are drained.
    pub fn record(&self, on: bool) -> Result<(), UserError> {
        self.instance.record(on)
    }

    /// Returns the requests recorded since the last time, core by core.
    pub fn drain(&self, mut sink: impl FnMut(Request)) -> Result<(), UserError> {
        let mut page = vec![0; page_size()];
        for pipe in &self.instance.pipes {
            let drained = burst_tracer::drain(&pipe.file, &mut page, |page| {
                for (time_ns, record) in Records::of(page) {
                    let event = self.decoder.decode(pipe.cpu, time_ns, record);
                    if let Some(EventKind::Complete(request)) = event.map(|event| event.kind) {
                        sink(request);
                    }
                }
                Ok(())
            });
            drained.map_err(|error| burst_tracer::unreadable(&error))?;
        }
        Ok(())
    }
}
