//! Two ways to keep requests in flight, behind one function.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tierwise_device::{Op, Request, SECTOR_BYTES};

use crate::supply::{Limit, Supply};
use crate::{ProbeError, Sink, Target, threads, uring};

const FILL_BLOCK_BYTES: u64 = 1 << 20;
const FILL_DEPTH: u32 = 8;

/// How requests are kept in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// One thread and a ring of the kernel.
    IoUring,
    /// A thread for each request in flight, with `pread`, `pwrite` and `fdatasync`.
    Threads,
}

impl Engine {
    /// The ring where the kernel provides one, else threads.
    pub fn best() -> Self {
        if uring::available() {
            Self::IoUring
        } else {
            Self::Threads
        }
    }

    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::IoUring => "io_uring",
            Self::Threads => "threads",
        }
    }
}

/// Serves requests from a target until there is none left or time is up; every one is reported to `sink`.
///
/// Writes carry bytes that cannot be compressed or found elsewhere. Returns the time from the first request to
/// the last completion, in nanoseconds.
///
/// # Arguments
/// `block_bytes` is the largest request.
///
/// # Errors
/// A request that fails, one outside the target, an engine that cannot start, or `stop`.
pub fn run(
    target: &Target,
    engine: Engine,
    requests: impl Iterator<Item = Request> + Send,
    block_bytes: u32,
    limit: Limit,
    stop: &AtomicBool,
    sink: &mut (impl Sink + Send),
) -> Result<u64, ProbeError> {
    let depth = limit.depth.max(1) as usize;
    let mut supply = Supply::new(target, requests, limit, stop);
    match engine {
        Engine::IoUring => uring::serve(&mut supply, target, depth, block_bytes as usize, sink)?,
        Engine::Threads => threads::serve(&mut supply, target, depth, block_bytes as usize, sink)?,
    }
    Ok(supply.now_ns())
}

/// Writes a target whole, in order, and flushes it: blocks only reserved would read back without the device.
///
/// # Errors
/// As [`run`].
pub fn fill(target: &Target, engine: Engine, stop: &AtomicBool) -> Result<(), ProbeError> {
    let blocks = target.size_bytes().div_ceil(FILL_BLOCK_BYTES);
    let writes = (0..blocks).map(|block| {
        let first = block * FILL_BLOCK_BYTES;
        let bytes = FILL_BLOCK_BYTES.min(target.size_bytes() - first);
        request(Op::Write, first, bytes)
    });
    let limit = |depth| Limit {
        depth,
        time: Duration::MAX,
    };
    let largest = FILL_BLOCK_BYTES as u32;
    run(
        target,
        engine,
        writes,
        largest,
        limit(FILL_DEPTH),
        stop,
        &mut (),
    )?;
    let flush = std::iter::once(request(Op::Flush, 0, 0));
    run(target, engine, flush, largest, limit(1), stop, &mut ()).map(drop)
}

fn request(op: Op, first_byte: u64, bytes: u64) -> Request {
    Request {
        op,
        sector: first_byte / SECTOR_BYTES,
        sectors: (bytes / SECTOR_BYTES) as u32,
        fua: false,
    }
}
