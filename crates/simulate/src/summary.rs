//! A few figures of a device, measured on its model as one would measure a real one.

use std::sync::Mutex;
use std::thread;

use serde::Serialize;
use tierwise_device::{Device, Nanos, Precondition, Profile};
use tierwise_pattern::Pattern;

use crate::{Limited, Limits, Pace, Report, SimulateError, run};

const MIB: u32 = 1 << 20;
const SEQUENTIAL: u32 = MIB;
const RANDOM: u32 = 4096;
const LOG_RECORD: u32 = 8192;
const DEEP: u32 = 32;
const SEQUENTIAL_DEPTH: u32 = 8;

/// Figures of a device that has been in use for long; see [`summarize`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Reads of 1 MiB in sequence, 8 outstanding, in 10^6 bytes per second.
    pub sequential_read_mb_per_s: f64,
    /// Writes of 1 MiB in sequence, 8 outstanding, in 10^6 bytes per second.
    pub sequential_write_mb_per_s: f64,
    /// Random 4 KiB reads per second, one outstanding.
    pub random_read_iops: f64,
    /// Random 4 KiB reads per second, 32 outstanding.
    pub random_read_qd32_iops: f64,
    /// Random 4 KiB writes per second, one outstanding.
    pub random_write_iops: f64,
    /// Random 4 KiB writes per second, 32 outstanding.
    pub random_write_qd32_iops: f64,
    /// Mean time of appending 8 KiB and flushing, in microseconds.
    pub write_flush_us: f64,
}

/// Measures a device by short runs on its model: sequential figures after every sector was written once in order,
/// the others in the steady state of random writes (for a volume: its credits spent). Each kind of write first
/// fills the caches in front of the medium.
///
/// # Errors
/// None that a valid profile can cause.
pub fn summarize(profile: &Profile) -> Result<Summary, SimulateError> {
    let mut sequential = Bench::new(profile, Precondition::Sequential);
    let mut random = Bench::new(profile, Precondition::Random { active_share: 1.0 });
    let append = Pattern {
        flush_every: 1,
        ..Pattern::write(false, LOG_RECORD)
    };
    let read = Pattern::read(true, RANDOM);
    let write = Pattern::write(true, RANDOM);
    let in_sequence = |pattern: Pattern| pattern.with_depth(SEQUENTIAL_DEPTH);
    Ok(Summary {
        sequential_read_mb_per_s: sequential
            .measure(in_sequence(Pattern::read(false, SEQUENTIAL)))?
            .mb_per_s,
        sequential_write_mb_per_s: sequential
            .measure(in_sequence(Pattern::write(false, SEQUENTIAL)))?
            .mb_per_s,
        random_read_iops: random.measure(read)?.iops,
        random_read_qd32_iops: random.measure(read.with_depth(DEEP))?.iops,
        write_flush_us: write_flush_us(&random.measure(append)?),
        random_write_iops: random.measure(write)?.iops,
        random_write_qd32_iops: random.measure(write.with_depth(DEEP))?.iops,
    })
}

fn write_flush_us(report: &Report) -> f64 {
    report.ops.values().map(|op| op.latency.mean_us).sum()
}

/// A device under measurement, and its time.
struct Bench {
    device: Box<dyn Device>,
    now: Nanos,
}

impl Bench {
    fn new(profile: &Profile, precondition: Precondition) -> Self {
        let mut device = profile.build(0);
        device.precondition(precondition);
        Self { device, now: 0 }
    }

    /// Lets a pattern settle, then measures it.
    fn measure(&mut self, pattern: Pattern) -> Result<Report, SimulateError> {
        let mut requests = pattern.requests(self.device.capacity_sectors(), 0);
        let mut part = |count: u64, longest_ns: Nanos| {
            let report = run(
                &mut *self.device,
                &mut Limited::new(&mut requests, count, pattern.think_ns),
                Pace::Closed {
                    depth: pattern.depth,
                },
                Limits {
                    start_ns: self.now,
                    until_ns: self.now + longest_ns,
                },
                None,
            )?;
            self.now = report.end_ns;
            Ok(report)
        };
        part(1024, 1_000_000_000)?;
        part(1024, 1_000_000_000)
    }
}

/// The figures of each profile, in their order, measured on as many threads as asked for.
pub fn summarize_all(profiles: &[Profile], threads: usize) -> Vec<Result<Summary, SimulateError>> {
    let next = Mutex::new(0..profiles.len());
    let found = Mutex::new(vec![None; profiles.len()]);
    let work = || {
        while let Some(index) = lock(&next).next() {
            let summary = summarize(&profiles[index]);
            lock(&found)[index] = Some(summary);
        }
    };
    thread::scope(|scope| (0..threads.max(1)).for_each(|_| drop(scope.spawn(work))));
    let found = found
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    found.into_iter().flatten().collect()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
