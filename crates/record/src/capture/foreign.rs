//! Processor time of the whole machine, without that of some threads.

use std::collections::HashMap;
use std::fs;

use super::processes;

/// Processor time that was used in a burst.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuTime {
    /// That all cores together have.
    pub all_ns: f64,
    /// That was used, but not by the recorder or those whose use does not count.
    pub others_ns: f64,
}

/// Processor time of the machine and of some threads, at one instant.
pub struct CpuUse {
    busy_ticks: u64,
    all_ticks: u64,
    ignored_ns: HashMap<i32, u64>,
}

impl CpuUse {
    /// Of the machine, and of threads whose use does not count.
    pub fn now(ignored: &[i32]) -> Self {
        let (busy_ticks, all_ticks) = machine_ticks();
        let time = |&tid: &i32| Some((tid, processes::cpu_ns(tid)?));
        Self {
            busy_ticks,
            all_ticks,
            ignored_ns: ignored.iter().filter_map(time).collect(),
        }
    }

    /// What was used since then.
    pub fn since(&self) -> CpuTime {
        let (busy, all) = machine_ticks();
        let used = |(&tid, before): (&i32, &u64)| {
            processes::cpu_ns(tid).map(|now| now.saturating_sub(*before))
        };
        let ignored_ns: u64 = self.ignored_ns.iter().filter_map(used).sum();
        CpuTime {
            all_ns: all.saturating_sub(self.all_ticks) as f64 * TICK_NS,
            others_ns: busy.saturating_sub(self.busy_ticks) as f64 * TICK_NS - ignored_ns as f64,
        }
    }
}

/// Length of a tick of `/proc/stat`, which is one of `USER_HZ` everywhere.
const TICK_NS: f64 = 1e7;

/// Ticks that all cores were busy, and all ticks.
fn machine_ticks() -> (u64, u64) {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().next().unwrap_or_default();
    // user nice system idle iowait irq softirq steal; guests are within user.
    let ticks: Vec<u64> = (line
        .split_whitespace()
        .skip(1)
        .take(8)
        .filter_map(|word| word.parse().ok()))
    .collect();
    let all: u64 = ticks.iter().sum();
    let idle: u64 = ticks.get(3..5).unwrap_or_default().iter().sum();
    (all - idle, all)
}
