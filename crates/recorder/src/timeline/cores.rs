//! The thread on each core, by its switches, and whether all switches were reported.

use std::collections::BTreeMap;

/// One core.
#[derive(Clone, Copy, Debug, Default)]
struct Core {
    /// Thread that runs, if the last switch named it; 0 is the idle one.
    running: Option<i32>,
    /// When that switch was.
    since_ns: u64,
    /// Switches to threads that were seen, and those away from the idle thread among them.
    arrivals: u64,
    seen: u64,
    /// Switches that must have happened, but were not seen.
    missing: u64,
}

/// All cores.
#[derive(Debug, Default)]
pub(super) struct Cores {
    cores: BTreeMap<u16, Core>,
}

impl Cores {
    /// Forgets which threads run.
    pub(super) fn forget(&mut self) {
        for core in self.cores.values_mut() {
            core.running = None;
        }
    }

    pub(super) fn switch(&mut self, time_ns: u64, cpu: u16, previous: i32, next: i32) {
        let core = self.cores.entry(cpu).or_default();
        core.running = Some(next);
        core.since_ns = time_ns;
        core.arrivals += u64::from(next != 0);
        core.seen += u64::from(previous == 0);
    }

    /// Infers when a thread that could run from `ready_ns` on got the core where it is seen running at
    /// `now_ns` without a switch. A switch from another recorded thread would have been seen, so the core was
    /// idle: the thread got it as soon as both were ready.
    pub(super) fn infer_arrival(&mut self, cpu: u16, tid: i32, ready_ns: u64, now_ns: u64) -> u64 {
        let core = self.cores.entry(cpu).or_default();
        core.missing += 1;
        let arrival = match core.running {
            Some(0) => core.since_ns.max(ready_ns),
            _ => ready_ns,
        };
        core.running = Some(tid);
        core.since_ns = arrival.min(now_ns);
        core.since_ns
    }

    /// Cores without a reported switch away from the idle thread, though there must have been many. A few are
    /// missing on any core: events are switched on one by one when a burst begins.
    pub(super) fn without_switches(&self) -> Vec<u16> {
        let silent = self.cores.iter().filter(|(_, core)| {
            let many = core.missing > 10 && core.missing * 20 > core.arrivals;
            many && core.missing > core.seen * 9
        });
        silent.map(|(&cpu, _)| cpu).collect()
    }

    /// Arrivals that were inferred, and those that were seen.
    pub(super) fn arrivals(&self) -> (u64, u64) {
        let missing = self.cores.values().map(|core| core.missing).sum();
        (missing, self.cores.values().map(|core| core.seen).sum())
    }
}
