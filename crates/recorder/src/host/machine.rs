//! Describes this machine and the processor time that is used on it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, mem, thread};

use rustix::fs::statvfs;
use rustix::thread::{Pid, gettid, sched_getaffinity};
use tierwise_recording::{Machine, StorageCpu};

use crate::host::control_groups::memory_limit_bytes;
use crate::host::processes::{self, ProcessTree, file_text, number_after_name};

/// The machine that a process runs on, with the memory that its control group leaves it.
#[must_use]
pub fn describe_machine(pid: i32) -> Machine {
    let memory_bytes = [installed_memory_bytes(), memory_limit_bytes(pid)];
    let affinity = [None, Pid::from_raw(pid)].map(|pid| sched_getaffinity(pid).ok());
    let cores = affinity.into_iter().flatten().map(|cores| cores.count());
    Machine {
        // This process may be pinned to fewer than the server.
        cores: cores.max().unwrap_or(1),
        memory_bytes: memory_bytes.into_iter().flatten().min().unwrap_or(0),
        core_limit: None,
        io_limits: Vec::new(),
        processes_bytes: 0,
        processor: processor_model(),
        kernel: file_text("/proc/sys/kernel/osrelease"),
    }
}

/// Memory of this machine.
pub fn installed_memory_bytes() -> Option<u64> {
    let kilobytes = number_after_name("MemTotal:", &file_text("/proc/meminfo"));
    kilobytes.map(|kilobytes| kilobytes << 10)
}

fn processor_model() -> String {
    let table = file_text("/proc/cpuinfo");
    let named = table.lines().find(|line| line.starts_with("model name"));
    let name = named.and_then(|line| line.split_once(':'));
    name.map_or(std::env::consts::ARCH, |(_, name)| name.trim())
        .to_owned()
}

/// Free bytes for an ordinary user on the file system of a path.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let space = statvfs(path).ok()?;
    Some(space.f_bavail * space.f_frsize)
}

// Processor time of the whole machine and of single threads, and the priority of this one.

/// Interval between two looks for an idle core.
pub const LOOKS_EACH: Duration = Duration::from_secs(1);

/// Cores that must be idle for one busy thread.
const FREE_CORES: f64 = 1.0;
/// Length of a tick of `/proc/stat`, which is one of `USER_HZ` everywhere.
const TICK_NS: f64 = 1e7;

/// Ticks of all cores together since the machine was started.
#[derive(Default)]
struct MachineTicks {
    busy: u64,
    idle: u64,
    stolen: u64,
    all: u64,
}

impl MachineTicks {
    fn now() -> Self {
        let stat = file_text("/proc/stat");
        let line = stat.lines().next().unwrap_or_default();
        let words = line.split_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        // Interrupts and time stolen by the hypervisor are not counted as programs: they lengthen whatever runs, and
        // much of both falls on idle cores. Guests are within user.
        let [user, nice, system, idle, iowait, _irq, _softirq, steal] = ticks[..] else {
            return Self::default();
        };
        Self {
            busy: user + nice + system,
            idle: idle + iowait,
            stolen: steal,
            all: ticks.iter().sum(),
        }
    }
}

/// Whether a core was idle, on average since the last look.
pub struct IdleCores {
    at: Instant,
    idle_ticks: u64,
}

impl IdleCores {
    pub fn now() -> Self {
        Self {
            at: Instant::now(),
            idle_ticks: MachineTicks::now().idle,
        }
    }

    /// Whether a core was idle enough for one busy thread; false too soon after a look, when not known.
    pub fn enough(&mut self) -> bool {
        let passed = self.at.elapsed();
        if passed < LOOKS_EACH / 2 {
            return false;
        }
        let before = mem::replace(self, Self::now());
        let idle_ns = (self.idle_ticks as f64 - before.idle_ticks as f64) * TICK_NS;
        let cores = idle_ns / passed.as_nanos() as f64;
        let all = thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
        cores >= FREE_CORES.min(all / 2.0)
    }
}

/// Starts a thread; gives its id too.
///
/// # Errors
/// If the system starts no thread.
pub fn spawn_thread_with_id<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<(JoinHandle<T>, i32)> {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::Builder::new().name(name.into()).spawn(move || {
        let _ = sender.send(gettid().as_raw_nonzero().get());
        run()
    })?;
    Ok((thread, receiver.recv().unwrap_or_default()))
}

/// Lets a thread of this process, or the calling one (0), run only where a core has nothing else to do, or as any other.
pub fn run_when_idle(tid: i32, idle: bool) {
    let policy = if idle {
        libc::SCHED_IDLE
    } else {
        libc::SCHED_OTHER
    };
    // SAFETY: the kernel's structure is integers alone, for which zero is a value.
    let none: libc::sched_param = unsafe { mem::zeroed() };
    // SAFETY: the pointer is to a live structure. A refusal leaves the priority as it was.
    unsafe { libc::sched_setscheduler(tid, policy, &raw const none) };
}

/// Processor time that was used in a burst.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BurstCpuTime {
    pub all_ns: f64,
    /// Time used, except by the recorder and the servers of emulated disks.
    pub others_ns: f64,
    /// Time that the hypervisor gave to others while threads wanted it.
    pub stolen_ns: f64,
    /// Time used by storage; none where the kernel's threads cannot be seen, as in a container.
    pub storage: Option<StorageCpu>,
    /// Time of each process, by pid and name, to 10 ms: the recorded ones and the recorder too, but not the servers of
    /// emulated disks.
    pub programs: Vec<(i32, String, f64)>,
}

/// Processor time of the machine and of some threads, at one instant.
pub struct CpuUseSnapshot {
    family: ProcessTree,
    recorder: ThreadCpuTimes,
    servers: ThreadCpuTimes,
    kernel: ThreadCpuTimes,
    ticks: MachineTicks,
}

impl CpuUseSnapshot {
    /// Of the machine, of the recorder's thread, of threads that serve emulated disks, and of the kernel's own.
    pub fn now(recorder: i32, servers: &[i32], family: ProcessTree) -> Self {
        let kernel = family.kernel_threads();
        Self {
            family,
            recorder: ThreadCpuTimes::of(&[recorder]),
            servers: ThreadCpuTimes::of(servers),
            kernel: ThreadCpuTimes::of(&kernel),
            // Last here and first at the end: looking for threads takes milliseconds.
            ticks: MachineTicks::now(),
        }
    }

    pub fn since(&self) -> BurstCpuTime {
        let (before, now) = (&self.ticks, MachineTicks::now());
        let time_ns = |now: u64, before: u64| now.saturating_sub(before) as f64 * TICK_NS;
        let server_ns = self.servers.since_ns();
        let family = ProcessTree::now();
        let kernel_ns = self.kernel.since_ns() + self.kernel.started_ns(&family);
        let ignored_ns = self.recorder.since_ns() + server_ns;
        let ran = family.ran_since(&self.family).into_iter();
        let programs = ran.filter(|(pid, _, _)| !self.servers.0.contains_key(pid));
        BurstCpuTime {
            all_ns: time_ns(now.all, before.all),
            others_ns: time_ns(now.busy, before.busy) - ignored_ns as f64,
            stolen_ns: time_ns(now.stolen, before.stolen),
            storage: (!self.kernel.0.is_empty()).then_some(StorageCpu {
                server_ns,
                kernel_ns,
            }),
            programs: programs
                .map(|(pid, name, ticks)| (pid, name, ticks as f64 * TICK_NS))
                .collect(),
        }
    }
}

/// Processor time that each of some threads has had.
struct ThreadCpuTimes(HashMap<i32, u64>);

impl ThreadCpuTimes {
    fn of(tids: &[i32]) -> Self {
        let time = |&tid: &i32| Some((tid, processes::thread_cpu_ns(tid)?));
        Self(tids.iter().filter_map(time).collect())
    }

    fn since_ns(&self) -> u64 {
        let had = |(&tid, before): (&i32, &u64)| {
            processes::thread_cpu_ns(tid).map(|now| now.saturating_sub(*before))
        };
        self.0.iter().filter_map(had).sum()
    }

    /// Processor time of the kernel threads that were not there before: workers come and go.
    fn started_ns(&self, family: &ProcessTree) -> u64 {
        let new = family.kernel_threads().into_iter();
        let new = new.filter(|tid| !self.0.contains_key(tid));
        new.filter_map(processes::thread_cpu_ns).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_cores_memory_and_a_kernel() {
        let here = describe_machine(std::process::id().cast_signed());
        assert!(here.cores > 0 && here.memory_bytes > 1 << 20);
        assert!(!here.processor.is_empty() && here.kernel.contains('.'));
        assert!(free_bytes(Path::new("/")).is_some());
    }
}
