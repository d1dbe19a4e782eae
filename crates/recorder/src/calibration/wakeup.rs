//! Cost of waking a thread: on another core that is idle, and on the same core.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread as threads;
use std::time::{Duration, Instant};

use tierwise_recording::WakeupLatency;

use super::quantile;
use super::thread::{Signal, background, now_ns};

/// Idle times of the core before it is woken, and number of tries: 0.3 s in all, spent by the waker.
const IDLE: [(Duration, usize); 4] = [
    (Duration::from_micros(20), 200),
    (Duration::from_micros(100), 200),
    (Duration::from_millis(1), 60),
    (Duration::from_millis(10), 20),
];
/// Least number of tries for a percentile.
const FEWEST_TRIES: usize = 10;
/// Switches there and back that are timed together, and number of tries.
const ROUNDS: u32 = 50;
const REPEATS: usize = 20;

/// A thread that is woken, and reports when it ran.
#[derive(Default)]
struct Sleeper {
    started: Signal,
    call: Signal,
    /// Number of times it was about to sleep.
    asleep: AtomicU64,
    ran_ns: AtomicU64,
    stop: AtomicBool,
}

/// Latency of waking a thread on core `to` from core `from`, where the caller runs.
pub(super) fn wakeup_latency(from: usize, to: usize, until: Instant) -> Vec<WakeupLatency> {
    if background(from).is_err() {
        return Vec::new();
    }
    let sleeper = Sleeper::default();
    threads::scope(|scope| {
        scope.spawn(|| sleeper.run(to));
        // It begins on the caller's core, which must be free until it has moved to its own.
        let started = sleeper.started.wait_beyond(0);
        let measured = IDLE
            .iter()
            .filter(|_| started)
            .filter_map(|&(idle, tries)| {
                let tries = (0..tries).map_while(|_| sleeper.wake_after(idle, until));
                let mut latencies_us: Vec<f64> = tries.collect();
                (latencies_us.len() >= FEWEST_TRIES).then_some(())?;
                Some(WakeupLatency {
                    idle_us: idle.as_secs_f64() * 1e6,
                    median_us: quantile(&mut latencies_us, 0.5)?,
                    p90_us: quantile(&mut latencies_us, 0.9)?,
                })
            });
        let measured = measured.collect();
        sleeper.stop.store(true, Ordering::Release);
        sleeper.call.raise();
        measured
    })
}

impl Sleeper {
    fn run(&self, core: usize) {
        let pinned = background(core).is_ok();
        self.started.raise();
        while pinned && !self.stop.load(Ordering::Acquire) {
            let seen = self.call.count();
            self.asleep.fetch_add(1, Ordering::Release);
            while !self.call.wait_beyond(seen) {}
            self.ran_ns.store(now_ns(), Ordering::Release);
        }
    }

    /// Wakes it when it has slept for this time; returns the latency in µs, none if time is over.
    fn wake_after(&self, idle: Duration, until: Instant) -> Option<f64> {
        let count = u64::from(self.call.count()) + 1;
        self.await_asleep(count, until)?;
        let idle_ends_ns = now_ns() + idle.as_nanos() as u64;
        while now_ns() < idle_ends_ns {
            spin_loop();
        }
        let woken_ns = now_ns();
        self.call.raise();
        self.await_asleep(count + 1, until)?;
        let ran_ns = self.ran_ns.load(Ordering::Acquire);
        Some(ran_ns.saturating_sub(woken_ns) as f64 / 1e3)
    }

    fn await_asleep(&self, count: u64, until: Instant) -> Option<()> {
        while self.asleep.load(Ordering::Acquire) < count {
            if Instant::now() > until {
                return None;
            }
            spin_loop();
        }
        Some(())
    }
}

/// Time to wake a thread on the caller's core and switch to it, in µs.
pub(super) fn context_switch_us(core: usize, until: Instant) -> Option<f64> {
    let (there, back) = (Signal::default(), Signal::default());
    let all = ROUNDS * REPEATS as u32;
    let mut each_us: Vec<f64> = threads::scope(|scope| {
        scope.spawn(|| {
            if background(core).is_ok() {
                (0..all)
                    .take_while(|&round| there.wait_beyond(round))
                    .for_each(|_| back.raise());
            }
        });
        let mut rounds = 0..all;
        let mut each_us = Vec::with_capacity(REPEATS);
        while !rounds.is_empty() && Instant::now() < until {
            let began_ns = now_ns();
            let whole = rounds.by_ref().take(ROUNDS as usize).all(|round| {
                there.raise();
                back.wait_beyond(round)
            });
            if !whole {
                break;
            }
            each_us.push((now_ns() - began_ns) as f64 / 1e3 / f64::from(2 * ROUNDS));
        }
        // Answers that were not asked for are given all the same, so that the other thread ends.
        rounds.for_each(|_| there.raise());
        each_us
    });
    quantile(&mut each_us, 0.5)
}
