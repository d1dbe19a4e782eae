//! Cost of cold caches for a thread that runs again: after the core was idle, and after another thread ran on
//! it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread as threads;
use std::time::{Duration, Instant};

use tierwise_recording::{CacheWarmup, ColdRun};

use super::quantile;
use super::thread::{Signal, background, now_ns, thread_cpu_ns};
use super::workload::{DATA_BYTES, Workload};

/// Length of the pause, and number of tries: 0.3 s in all, half of them idle.
const PAUSES: [(Duration, usize); 3] = [
    (Duration::from_micros(100), 40),
    (Duration::from_millis(1), 30),
    (Duration::from_millis(8), 14),
];
/// Runs that warm the caches before each pause.
const WARMING_RUNS: usize = 2;
/// Least number of tries for a result.
const FEWEST_TRIES: usize = 5;
/// The other thread has this many times the data: it is no copy of the first.
const OTHER_TIMES: usize = 2;

/// Another thread, which runs on the same core for the length of a pause.
#[derive(Default)]
struct Other {
    go: Signal,
    done: Signal,
    until_ns: AtomicU64,
    stop: AtomicBool,
}

impl Other {
    fn run(&self, core: usize) {
        let pinned = background(core).is_ok();
        let mut work = Workload::new(OTHER_TIMES * DATA_BYTES);
        let mut seen = 0;
        while pinned && self.go.wait_beyond(seen) && !self.stop.load(Ordering::Acquire) {
            seen += 1;
            let mut block = 0;
            while now_ns() < self.until_ns.load(Ordering::Acquire) {
                work.step(block);
                block += 1;
            }
            self.done.raise();
        }
    }

    /// Lets it run for this time, while the caller sleeps; returns whether it did.
    fn run_for(&self, pause: Duration) -> bool {
        let seen = self.done.count();
        let until_ns = now_ns() + pause.as_nanos() as u64;
        self.until_ns.store(until_ns, Ordering::Release);
        self.go.raise();
        self.done.wait_beyond(seen)
    }
}

/// Costs of cold caches on the caller's core.
pub(super) fn cache_warmup(core: usize, until: Instant) -> Option<CacheWarmup> {
    let other = Other::default();
    threads::scope(|scope| {
        scope.spawn(|| other.run(core));
        let measured = measure(&other, until);
        other.stop.store(true, Ordering::Release);
        other.go.raise();
        measured
    })
}

fn measure(other: &Other, until: Instant) -> Option<CacheWarmup> {
    let mut work = Workload::new(DATA_BYTES);
    let mut warm_ns = Vec::new();
    let mut cold = Vec::new();
    for (pause, tries) in PAUSES {
        let mut idle_ns = Vec::new();
        let mut shared_ns = Vec::new();
        for _ in (0..tries).take_while(|_| Instant::now() < until) {
            warm_ns.push(warmed_ns(&mut work));
            threads::sleep(pause);
            idle_ns.push(timed_ns(&mut work));
            warm_ns.push(warmed_ns(&mut work));
            if !other.run_for(pause) {
                return None;
            }
            shared_ns.push(timed_ns(&mut work));
        }
        if shared_ns.len() >= FEWEST_TRIES {
            let pair = quantile(&mut idle_ns, 0.5).zip(quantile(&mut shared_ns, 0.5));
            cold.extend(pair.map(|pair| (pause, pair)));
        }
    }
    let warm_ns = quantile(&mut warm_ns, 0.5)?;
    let pauses = cold.iter().map(|&(pause, (idle_ns, shared_ns))| ColdRun {
        pause_us: pause.as_secs_f64() * 1e6,
        idle_core_ns: (idle_ns - warm_ns).max(0.0),
        shared_core_ns: (shared_ns - warm_ns).max(0.0),
    });
    Some(CacheWarmup {
        warm_ns,
        pauses: pauses.collect(),
        ..Workload::described()
    })
}

/// Warms the caches; returns the workload's time with warm caches.
fn warmed_ns(work: &mut Workload) -> f64 {
    (0..WARMING_RUNS).for_each(|_| work.run());
    timed_ns(work)
}

fn timed_ns(work: &mut Workload) -> f64 {
    let began_ns = thread_cpu_ns();
    work.run();
    (thread_cpu_ns() - began_ns) as f64
}
