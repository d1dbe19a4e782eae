//! Processor time of the whole machine, and of threads that are counted separately.

use std::collections::HashMap;
use std::fs;

use tierwise_recording::StorageCpu;

use super::family::Family;
use crate::host::processes;

/// Processor time that was used in a burst.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CpuTime {
    /// Time of all cores together.
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
pub struct CpuUse {
    family: Family,
    recorder: Threads,
    servers: Threads,
    kernel: Threads,
    ticks: Ticks,
}

impl CpuUse {
    /// Of the machine, of the recorder's thread, of threads that serve emulated disks, and of the kernel's own.
    pub fn now(recorder: i32, servers: &[i32], family: Family) -> Self {
        let kernel = family.kernel_threads();
        Self {
            family,
            recorder: Threads::of(&[recorder]),
            servers: Threads::of(servers),
            kernel: Threads::of(&kernel),
            // Last here and first at the end: looking for threads takes milliseconds.
            ticks: Ticks::now(),
        }
    }

    /// Time used since then.
    pub fn since(&self) -> CpuTime {
        let ticks = Ticks::now();
        let server_ns = self.servers.since_ns();
        let family = Family::now();
        let kernel_ns = self.kernel.since_ns() + self.kernel.started_ns(&family);
        let ignored_ns = self.recorder.since_ns() + server_ns;
        CpuTime {
            all_ns: ticks.all.saturating_sub(self.ticks.all) as f64 * TICK_NS,
            others_ns: ticks.busy.saturating_sub(self.ticks.busy) as f64 * TICK_NS
                - ignored_ns as f64,
            stolen_ns: ticks.stolen.saturating_sub(self.ticks.stolen) as f64 * TICK_NS,
            storage: (!self.kernel.0.is_empty()).then_some(StorageCpu {
                server_ns,
                kernel_ns,
            }),
            programs: self.programs(&family),
        }
    }

    fn programs(&self, family: &Family) -> Vec<(i32, String, f64)> {
        let ran = family.ran_since(&self.family).into_iter();
        let others = ran.filter(|(pid, _, _)| !self.servers.0.contains_key(pid));
        others
            .map(|(pid, name, ticks)| (pid, name, ticks as f64 * TICK_NS))
            .collect()
    }
}

/// Processor time that each of some threads has had.
struct Threads(HashMap<i32, u64>);

impl Threads {
    fn of(tids: &[i32]) -> Self {
        let time = |&tid: &i32| Some((tid, processes::cpu_ns(tid)?));
        Self(tids.iter().filter_map(time).collect())
    }

    /// Their processor time since then.
    fn since_ns(&self) -> u64 {
        let had = |(&tid, before): (&i32, &u64)| {
            processes::cpu_ns(tid).map(|now| now.saturating_sub(*before))
        };
        self.0.iter().filter_map(had).sum()
    }

    /// Processor time of the kernel threads that were not there before: workers come and go.
    fn started_ns(&self, family: &Family) -> u64 {
        let new = family.kernel_threads().into_iter();
        let new = new.filter(|tid| !self.0.contains_key(tid));
        new.filter_map(processes::cpu_ns).sum()
    }
}

/// Length of a tick of `/proc/stat`, which is one of `USER_HZ` everywhere.
const TICK_NS: f64 = 1e7;

/// Ticks of all cores together since the machine was started.
struct Ticks {
    busy: u64,
    stolen: u64,
    all: u64,
}

impl Ticks {
    fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let line = stat.lines().next().unwrap_or_default();
        // user nice system idle iowait irq softirq steal; guests are within user. Interrupts and time stolen by the
        // hypervisor are not counted as programs: they lengthen whatever runs, and much of both falls on idle cores.
        let ticks: Vec<u64> = (line
            .split_whitespace()
            .skip(1)
            .take(8)
            .filter_map(|word| word.parse().ok()))
        .collect();
        Self {
            busy: ticks.iter().take(3).sum(),
            stolen: ticks.get(7).copied().unwrap_or(0),
            all: ticks.iter().sum(),
        }
    }
}
