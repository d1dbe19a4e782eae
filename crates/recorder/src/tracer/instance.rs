//! One private instance of the kernel's tracer: a ring buffer and switches of its own, removed at the end.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::TracerError;
use super::decode::Decoder;
use super::format::Format;
use super::tracepoints::Meaning;

/// One instance; what it switched on is off again when this is dropped.
pub struct Instance {
    directory: PathBuf,
    enabled: Vec<PathBuf>,
    pipes: Vec<Pipe>,
}

/// The records of one core.
pub struct Pipe {
    /// Which.
    pub cpu: u16,
    /// `trace_pipe_raw`: every read gives a page, or would block.
    pub file: File,
}

impl Instance {
    /// Makes one that is switched off, with `buffer_bytes` a core.
    pub fn create(tracefs: &Path, name: &str, buffer_bytes: u64) -> Result<Self, TracerError> {
        let directory = tracefs.join("instances").join(name);
        fs::create_dir(&directory).map_err(|error| TracerError::tracefs(&directory, &error))?;
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

    fn open_pipe(&mut self, cpu: u16) -> Result<(), TracerError> {
        let path = self.path(&format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let mut options = OpenOptions::new();
        let opened = options
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&path);
        let file = opened.map_err(|error| TracerError::tracefs(&path, &error))?;
        self.pipes.push(Pipe { cpu, file });
        Ok(())
    }

    /// Plans to switch on a tracepoint `SYSTEM/NAME`; false if this kernel lacks it.
    pub fn add(&mut self, event: &str, meaning: Meaning, decoder: &mut Decoder) -> bool {
        let directory = self.path("events").join(event);
        let text = fs::read_to_string(directory.join("format")).unwrap_or_default();
        let known = Format::parse(&text).is_some_and(|format| decoder.learn(meaning, &format));
        if known {
            self.enabled.push(directory.join("enable"));
        }
        known
    }

    /// Records only those events of a tracepoint that an expression over its fields holds for.
    pub fn filter(&self, event: &str, expression: &str) -> Result<(), TracerError> {
        self.set(&format!("events/{event}/filter"), expression)
    }

    /// Follows the threads that followed ones start.
    pub fn follow_forks(&self) -> Result<(), TracerError> {
        self.set("options/event-fork", "1")
    }

    /// Traces these threads besides those that it traces already; the kernel drops the ones that end.
    pub fn follow(&self, tids: &[i32]) -> Result<(), TracerError> {
        let path = self.path("set_event_pid");
        let told = fs::read_to_string(&path).unwrap_or_default();
        let known: HashSet<i32> = told
            .lines()
            .filter_map(|line| line.trim().parse().ok())
            .collect();
        let missing = tids.iter().filter(|tid| !known.contains(tid));
        let list: String = missing.map(|tid| format!("{tid}\n")).collect();
        // Each write waits for all cores to see it, some 30 ms, so all threads share one write.
        let append = |file: io::Result<File>| file?.write_all(list.as_bytes());
        if list.is_empty() {
            return Ok(());
        }
        append(OpenOptions::new().append(true).open(&path))
            .map_err(|error| TracerError::tracefs(&path, &error))
    }

    /// Switches all planned tracepoints on; nothing is recorded before [`Self::record`].
    pub fn enable(&self) -> Result<(), TracerError> {
        for path in &self.enabled {
            fs::write(path, "1").map_err(|error| TracerError::tracefs(path, &error))?;
        }
        Ok(())
    }

    /// Switches all tracepoints off and follows no thread, so that tracing has no cost for the machine.
    ///
    /// As long as threads are followed, the kernel checks at every switch and wake-up whether it is one of
    /// theirs.
    pub fn disable(&self) -> Result<(), TracerError> {
        self.set("events/enable", "0")?;
        self.set("set_event_pid", "")
    }

    /// Starts or stops recording into the buffer.
    pub fn record(&self, on: bool) -> Result<(), TracerError> {
        self.set("tracing_on", if on { "1" } else { "0" })
    }

    /// The records, by core.
    pub fn pipes(&self) -> Result<Vec<Pipe>, TracerError> {
        let cloned = self.pipes.iter().map(|pipe| {
            let file = pipe.file.try_clone()?;
            Ok(Pipe {
                cpu: pipe.cpu,
                file,
            })
        });
        let cloned: io::Result<Vec<_>> = cloned.collect();
        cloned.map_err(|error| TracerError::tracefs(&self.directory, &error))
    }

    /// Counts since the instance was made.
    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for pipe in &self.pipes {
            let path = self.path(&format!("per_cpu/cpu{}/stats", pipe.cpu));
            counts.add(&fs::read_to_string(path).unwrap_or_default());
        }
        counts
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn set(&self, name: &str, value: &str) -> Result<(), TracerError> {
        let path = self.path(name);
        fs::write(&path, value).map_err(|error| TracerError::tracefs(&path, &error))
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

/// Events of some instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events that were read.
    pub read: u64,
    /// Events that were dropped.
    pub lost: u64,
}

impl Counts {
    /// Of these instances together.
    pub fn of(instances: &[&Instance]) -> Self {
        let each = instances.iter().map(|instance| instance.counts());
        each.fold(Self::default(), |sum, one| Self {
            read: sum.read + one.read,
            lost: sum.lost + one.lost,
        })
    }

    /// Adds a core's `stats`.
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

/// Cores that are online, in order.
pub fn online_cpus() -> Vec<u16> {
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
