//! Idle time of the machine, and the priority of a thread.

use std::fs;
use std::time::{Duration, Instant};

/// Interval between two looks for an idle core.
pub const LOOKS_EACH: Duration = Duration::from_secs(1);

/// Cores that must be idle for one busy thread.
const FREE_CORES: f64 = 1.0;
/// Length of a tick of `/proc/stat`.
const TICK_S: f64 = 0.01;

/// Whether a core was idle, on average since the last look.
pub struct IdleCores {
    at: Instant,
    idle_s: f64,
}

impl IdleCores {
    /// Takes the first reading.
    pub fn now() -> Self {
        Self {
            at: Instant::now(),
            idle_s: idle_s(),
        }
    }

    /// Whether a core was idle enough for one busy thread; false too soon after a look, when not known.
    pub fn enough(&mut self) -> bool {
        let passed = self.at.elapsed();
        if passed < LOOKS_EACH / 2 {
            return false;
        }
        let before = std::mem::replace(self, Self::now());
        let cores = (self.idle_s - before.idle_s) / passed.as_secs_f64();
        let all = std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
        cores >= FREE_CORES.min(all / 2.0)
    }
}

/// Total idle time of all cores since the machine was started.
fn idle_s() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().next().unwrap_or_default();
    let ticks = line.split_whitespace().skip(4).take(2);
    let ticks: u64 = ticks.filter_map(|word| word.parse::<u64>().ok()).sum();
    ticks as f64 * TICK_S
}

/// Lets the calling thread run only where a core has nothing else to do, or as any other thread.
pub fn run_when_idle(idle: bool) {
    let policy = if idle {
        libc::SCHED_IDLE
    } else {
        libc::SCHED_OTHER
    };
    // SAFETY: the kernel's structure is integers alone, for which zero is a value.
    let none: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live structure. A refusal leaves the priority as it was.
    unsafe { libc::sched_setscheduler(0, policy, &raw const none) };
}
