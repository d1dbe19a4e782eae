//! Throughput and latency over written volume; shows the write cliff at which cleaning begins.

use std::sync::{Arc, OnceLock};

use crate::random::{GOLDEN_GAMMA, Xorshift};
use crate::ssd::ftl::{CleaningParams, Flash, Ftl};
use crate::{Completion, Device, Nanos, Op, Request, SECTOR_BYTES};

/// Sectors of each write.
const WRITE_SECTORS: u32 = 8;

/// Times of a part of the writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Bytes written from the beginning to the end of this window.
    pub written_bytes: u64,
    /// 10^6 bytes a second.
    pub mb_per_s: f64,
    /// Median latency of a write.
    pub p50_ns: Nanos,
    /// 99th percentile of the latency.
    pub p99_ns: Nanos,
    /// Bytes to the flash for each byte of the host.
    pub write_amplification: f64,
}

/// Writes 4 KiB at random places of a device, `depth` (1 or more) at a time, in `windows` windows of
/// `window_bytes`; returns the times of each window. The same seed gives the same places.
pub fn overwrite_history(
    device: &mut dyn Device,
    depth: u64,
    window_bytes: u64,
    windows: u64,
    seed: u64,
) -> Vec<Window> {
    let mut writer = Writer::new(device, depth, seed);
    let count = (window_bytes / SECTOR_BYTES / u64::from(WRITE_SECTORS)).max(1);
    (1..=windows).map(|_| writer.window(count)).collect()
}

/// A host that keeps writes outstanding.
struct Writer<'a> {
    device: &'a mut dyn Device,
    now: Nanos,
    random: Xorshift,
    written: u64,
    /// When each outstanding write was submitted, by its id.
    submitted: Vec<Nanos>,
    completions: Vec<Completion>,
}

impl<'a> Writer<'a> {
    fn new(device: &'a mut dyn Device, depth: u64, seed: u64) -> Self {
        let mut writer = Self {
            device,
            now: 0,
            random: Xorshift(seed.wrapping_mul(GOLDEN_GAMMA) | 1),
            written: 0,
            submitted: vec![0; depth.max(1) as usize],
            completions: Vec::with_capacity(depth as usize),
        };
        (0..depth.max(1)).for_each(|id| writer.submit(id));
        writer
    }

    fn submit(&mut self, id: u64) {
        let places = self.device.capacity_sectors() / u64::from(WRITE_SECTORS);
        let place = self.random.below(places);
        let request = Request::new(Op::Write, place * u64::from(WRITE_SECTORS), WRITE_SECTORS);
        self.submitted[id as usize] = self.now;
        self.device.submit(self.now, id, request);
    }

    fn window(&mut self, count: u64) -> Window {
        let (start, before) = (self.now, self.device.written());
        let mut latencies = Vec::with_capacity(count as usize);
        while (latencies.len() as u64) < count
            && let Some(event) = self.device.next_event()
        {
            self.now = event;
            self.completions.clear();
            self.device.advance(event, &mut self.completions);
            for index in 0..self.completions.len() {
                let done = self.completions[index];
                latencies.push(done.at - self.submitted[done.id as usize]);
                self.submit(done.id);
            }
        }
        let bytes = latencies.len() as u64 * u64::from(WRITE_SECTORS) * SECTOR_BYTES;
        self.written += bytes;
        latencies.sort_unstable();
        let after = self.device.written();
        let host = after.host_sectors - before.host_sectors;
        Window {
            written_bytes: self.written,
            mb_per_s: bytes as f64 * 1e3 / (self.now - start).max(1) as f64,
            p50_ns: latencies[latencies.len() / 2],
            p99_ns: latencies[latencies.len() * 99 / 100],
            write_amplification: (after.medium_sectors - before.medium_sectors) as f64
                / host as f64,
        }
    }
}

// The state after long use, computed once for all devices built from a profile or from its copies.

/// The map of a device whose whole space was overwritten at random, computed at the first request for it.
#[derive(Clone, Debug, Default)]
pub struct Worn(Arc<OnceLock<Kept>>);

/// A map and the parameters that determine it.
#[derive(Debug)]
struct Kept {
    flash: Flash,
    cleaning: CleaningParams,
    ftl: Ftl,
}

impl Worn {
    /// A copy of it, for a device of these parameters. Parameters other than the first device's get their own
    /// map.
    pub(super) fn copy(&self, flash: &Flash, cleaning: &CleaningParams) -> Ftl {
        let wear_in = || {
            let mut ftl = Ftl::new(flash, cleaning);
            ftl.wear_in(1.0);
            ftl.shared()
        };
        let kept = self.0.get_or_init(|| Kept {
            flash: *flash,
            cleaning: cleaning.clone(),
            ftl: wear_in(),
        });
        if kept.flash == *flash && kept.cleaning == *cleaning {
            kept.ftl.clone()
        } else {
            wear_in()
        }
    }
}

/// The parameters determine it: those that differ in nothing else are equal.
impl PartialEq for Worn {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
