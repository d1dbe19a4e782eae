//! A pattern on a target: one line of a benchmark.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tierwise_device::{Request, SECTOR_BYTES};
use tierwise_pattern::Pattern;

use crate::{Counted, Engine, Limit, Measured, ProbeError, Target, run};

/// Serves a pattern for a time and sums up; flushes of the pattern are real ones.
///
/// # Errors
/// A target smaller than one block, a block that is no multiple of a sector, and as [`run`].
pub fn measure(
    target: &Target,
    engine: Engine,
    pattern: &Pattern,
    seed: u64,
    time: Duration,
    stop: &AtomicBool,
) -> Result<Measured, ProbeError> {
    let span_sectors = target.size_bytes() / SECTOR_BYTES;
    if span_sectors < u64::from(pattern.block_sectors()) {
        return Err(ProbeError::BadRequest(format!(
            "{} bytes have no room for a block of {}",
            target.size_bytes(),
            pattern.block_bytes
        )));
    }
    let limit = Limit {
        depth: pattern.depth,
        time,
    };
    let requests = pattern.requests(span_sectors, seed);
    let mut counted = Counted::new();
    let elapsed_ns = run(
        target,
        engine,
        requests,
        pattern.block_bytes,
        limit,
        stop,
        &mut counted,
    )?;
    Ok(counted.measured(elapsed_ns))
}

/// Serves listed requests and returns each one's time, in order of completion.
///
/// # Errors
/// As [`run`].
pub fn trace(
    target: &Target,
    engine: Engine,
    requests: &[Request],
    limit: Limit,
    stop: &AtomicBool,
) -> Result<Vec<crate::Done>, ProbeError> {
    let largest = requests.iter().map(|request| request.sectors).max();
    let block_bytes = largest.unwrap_or(0) * SECTOR_BYTES as u32;
    let mut done = crate::Trace::default();
    run(
        target,
        engine,
        requests.iter().copied(),
        block_bytes,
        limit,
        stop,
        &mut done,
    )?;
    Ok(done.0)
}
