//! A few figures of a device, measured on its model in the same way as on a real one.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde::Serialize;
use tierwise_device::{Device, DeviceParams, Nanos, Precondition, Profile, Request};
use tierwise_pattern::Pattern;

use crate::{
    ArrivalLimits, ArrivalPace, LimitedSource, SimulationReport, UserError, simulate_requests,
};

const MIB: u32 = 1 << 20;
const SEQUENTIAL: u32 = MIB;
const RANDOM: u32 = 4096;
const LOG_RECORD: u32 = 8192;
const DEEP: u32 = 32;
const SEQUENTIAL_DEPTH: u32 = 8;

/// Caches are filled in at most this number of parts; the first whose writes reach the medium is the last.
const SETTLING_PARTS: u64 = 16;
/// Time in which the token buckets that bound a volume's rates from one second to the next run dry.
const VOLUME_SETTLING_NS: Nanos = 1_000_000_000;
/// Writes to the medium for each of the host's; below this, writes still go to a cache that is not full.
const SETTLED: f64 = 0.9;

/// Figures of a device that has been in use for long; see [`measure_device_figures`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DeviceFigures {
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
    /// Whether some writes still went to a cache that was not full, so that more of them would be slower.
    pub cached_writes: bool,
}

/// Measures a device by short runs on its model: sequential figures after every sector was written once in order,
/// the others in the steady state of random writes; a volume has spent its credits for both. Writes first fill
/// caches, of up to 512 MiB at random and 4 GiB in sequence.
///
/// # Errors
/// None that a valid profile can cause.
pub fn measure_device_figures(profile: &Profile) -> Result<DeviceFigures, UserError> {
    let used = Precondition::Random { active_share: 1.0 };
    let filled = match profile.params() {
        DeviceParams::Volume(_) => used,
        _ => Precondition::Sequential,
    };
    let mut random = DeviceBench::new(profile, used);
    let read = Pattern::read(true, RANDOM);
    let write = Pattern::write(true, RANDOM);
    let random_read_qd32_iops = random.measure(read.with_depth(DEEP), RANDOM_RUN)?.iops;
    let random_read_iops = random.measure(read, RANDOM_RUN)?.iops;
    let write_flush_us = measure_write_flush_us(&random.measure(measure_log_append(), LOG_RUN)?);
    let random_write_qd32_iops = random.measure(write.with_depth(DEEP), RANDOM_RUN)?.iops;
    let random_write_iops = random.measure(write, RANDOM_RUN)?.iops;
    let cached = random.cached;
    drop(random); // so that the second device can have its memory

    let mut sequential = DeviceBench::new(profile, filled);
    let in_sequence = |pattern: Pattern| pattern.with_depth(SEQUENTIAL_DEPTH);
    let read = in_sequence(Pattern::read(false, SEQUENTIAL));
    let write = in_sequence(Pattern::write(false, SEQUENTIAL));
    Ok(DeviceFigures {
        sequential_read_mb_per_s: sequential.measure(read, SEQUENTIAL_RUN)?.mb_per_s,
        sequential_write_mb_per_s: sequential.measure(write, SEQUENTIAL_RUN)?.mb_per_s,
        random_read_iops,
        random_read_qd32_iops,
        random_write_iops,
        random_write_qd32_iops,
        write_flush_us,
        cached_writes: cached || sequential.cached,
    })
}

fn measure_log_append() -> Pattern {
    Pattern {
        flush_every: 1,
        ..Pattern::write(false, LOG_RECORD)
    }
}

fn measure_write_flush_us(report: &SimulationReport) -> f64 {
    report.ops.values().map(|op| op.latency.mean_us).sum()
}

/// Number of requests measured, and of those in each part that a device settles with before that.
#[derive(Clone, Copy)]
struct MeasurementLength {
    measured: u64,
    settling_part: u64,
}

const RANDOM_RUN: MeasurementLength = MeasurementLength {
    measured: 1024,
    settling_part: 8192,
};
const SEQUENTIAL_RUN: MeasurementLength = MeasurementLength {
    measured: 256,
    settling_part: 256,
};
const LOG_RUN: MeasurementLength = MeasurementLength {
    measured: 256,
    settling_part: 64,
};

/// A device under measurement, and its time.
struct DeviceBench {
    device: Box<dyn Device>,
    now: Nanos,
    /// Seed of the requests, another for each pattern: no pattern shall find what an earlier one has read.
    seed: u64,
    settling_ns: Nanos,
    cached: bool,
}

impl DeviceBench {
    fn new(profile: &Profile, precondition: Precondition) -> Self {
        let mut device = profile.build(0);
        device.precondition(precondition);
        Self {
            device,
            now: 0,
            seed: 0,
            settling_ns: match profile.params() {
                DeviceParams::Volume(_) => VOLUME_SETTLING_NS,
                _ => 0,
            },
            cached: false,
        }
    }

    /// Lets a pattern settle, then measures it.
    fn measure(
        &mut self,
        pattern: Pattern,
        length: MeasurementLength,
    ) -> Result<SimulationReport, UserError> {
        self.seed += 1;
        let settled_ns = self.now + self.settling_ns;
        let mut requests = pattern.requests(self.device.capacity_sectors(), self.seed);
        for _ in 0..SETTLING_PARTS {
            let report = self.run(&mut requests, pattern.depth, length.settling_part)?;
            if is_settled(&report) && self.now >= settled_ns {
                break;
            }
        }
        let report = self.run(&mut requests, pattern.depth, length.measured)?;
        self.cached |= !is_settled(&report);
        Ok(report)
    }

    fn run(
        &mut self,
        requests: impl Iterator<Item = Request>,
        depth: u32,
        count: u64,
    ) -> Result<SimulationReport, UserError> {
        let report = simulate_requests(
            &mut *self.device,
            &mut LimitedSource::new(requests, count, 0),
            ArrivalPace::Closed { depth },
            ArrivalLimits {
                start_ns: self.now,
                ..ArrivalLimits::default()
            },
            None,
        )?;
        self.now = report.end_ns;
        Ok(report)
    }
}

fn is_settled(report: &SimulationReport) -> bool {
    report
        .write_amplification
        .is_none_or(|amplification| amplification >= SETTLED)
}

/// The figures of each profile, in their order, measured on as many threads as asked for.
pub fn summarize_profiles(
    profiles: &[Profile],
    threads: usize,
) -> Vec<Result<DeviceFigures, UserError>> {
    let next = AtomicUsize::new(0);
    let summaries = Mutex::new(vec![None; profiles.len()]);
    let take = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        Some((index, profiles.get(index)?))
    };
    let work = || {
        while let Some((index, profile)) = take() {
            let summary = measure_device_figures(profile);
            lock(&summaries)[index] = Some(summary);
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // The others do the work of a thread that the system refuses.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let summaries = summaries
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    summaries.into_iter().flatten().collect()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
