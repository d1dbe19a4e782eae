//! Processor time that went to others than the threads that are recorded.

use std::collections::HashMap;
use std::fs;

use super::processes;

/// Processor time of the machine and of some threads, at one instant.
pub struct CpuUse {
    busy_ticks: u64,
    all_ticks: u64,
    own_ns: HashMap<i32, u64>,
}

impl CpuUse {
    /// Of the machine and of these threads.
    pub fn now(own: &[i32]) -> Self {
        let (busy_ticks, all_ticks) = machine_ticks();
        let time = |&tid: &i32| Some((tid, processes::cpu_ns(tid)?));
        Self {
            busy_ticks,
            all_ticks,
            own_ns: own.iter().filter_map(time).collect(),
        }
    }

    /// Share of all cores' time since then that others had; those that ended meanwhile count among them.
    pub fn foreign_share_since(&self) -> f64 {
        let (busy, all) = machine_ticks();
        let ticks = all.saturating_sub(self.all_ticks);
        if ticks == 0 {
            return 0.0;
        }
        let used = |(&tid, before): (&i32, &u64)| {
            processes::cpu_ns(tid).map(|now| now.saturating_sub(*before))
        };
        let own_ns: u64 = self.own_ns.iter().filter_map(used).sum();
        let busy_ns = busy.saturating_sub(self.busy_ticks) as f64 * TICK_NS;
        ((busy_ns - own_ns as f64) / (ticks as f64 * TICK_NS)).clamp(0.0, 1.0)
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
