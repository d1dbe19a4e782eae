//! Two ways to keep requests in flight, behind one function.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use tierwise_device::{Op, Request, SECTOR_BYTES};
use tierwise_latency::{LatencyHistogram, LatencyPercentiles};
use tierwise_pattern::Pattern;

use crate::{MeasuredTarget, ProbeError, thread_engine, uring_engine};

const FILL_BLOCK_BYTES: u64 = 1 << 20;
const FILL_DEPTH: u32 = 8;

/// How requests are kept in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeEngine {
    /// One thread and a ring of the kernel.
    IoUring,
    /// A thread for each request in flight, with `pread`, `pwrite` and `fdatasync`.
    Threads,
}

impl ProbeEngine {
    /// The ring where the kernel provides one, else threads.
    pub fn best() -> Self {
        if uring_engine::is_uring_available() {
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
pub fn run_requests(
    target: &MeasuredTarget,
    engine: ProbeEngine,
    requests: impl Iterator<Item = Request> + Send,
    block_bytes: u32,
    limit: ProbeLimit,
    stop: &AtomicBool,
    sink: &mut (impl CompletionSink + Send),
) -> Result<u64, ProbeError> {
    let depth = limit.depth.max(1) as usize;
    let mut supply = RequestSupply::new(target, requests, limit, stop);
    match engine {
        ProbeEngine::IoUring => {
            uring_engine::serve_with_uring(&mut supply, target, depth, block_bytes as usize, sink)?
        }
        ProbeEngine::Threads => thread_engine::serve_with_threads(
            &mut supply,
            target,
            depth,
            block_bytes as usize,
            sink,
        )?,
    }
    Ok(supply.now_ns())
}

/// Writes a target whole, in order, and flushes it: blocks only reserved would read back without the device.
///
/// # Errors
/// As [`run_requests`].
pub fn fill_target(
    target: &MeasuredTarget,
    engine: ProbeEngine,
    stop: &AtomicBool,
) -> Result<(), ProbeError> {
    let blocks = target.size_bytes().div_ceil(FILL_BLOCK_BYTES);
    let writes = (0..blocks).map(|block| {
        let first = block * FILL_BLOCK_BYTES;
        let bytes = FILL_BLOCK_BYTES.min(target.size_bytes() - first);
        probe_request(Op::Write, first, bytes)
    });
    let limit = |depth| ProbeLimit {
        depth,
        time: Duration::MAX,
    };
    let largest = FILL_BLOCK_BYTES as u32;
    run_requests(
        target,
        engine,
        writes,
        largest,
        limit(FILL_DEPTH),
        stop,
        &mut (),
    )?;
    let flush = std::iter::once(probe_request(Op::Flush, 0, 0));
    run_requests(target, engine, flush, largest, limit(1), stop, &mut ()).map(drop)
}

fn probe_request(op: Op, first_byte: u64, bytes: u64) -> Request {
    Request::new(op, first_byte / SECTOR_BYTES, (bytes / SECTOR_BYTES) as u32)
}

// State shared by both engines: the requests still to come, those that are done, and the clock.

/// When no further request is started; those in flight are waited for.
#[derive(Clone, Copy, Debug)]
pub struct ProbeLimit {
    /// Requests in flight at once.
    pub depth: u32,
    /// Longest time, counted from the first request.
    pub time: Duration,
}

/// A request that is done, with times since the first request of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoneRequest {
    /// Its place among the requests, from 0.
    pub number: u64,
    /// What it did.
    pub op: Op,
    /// Length; 0 for a flush.
    pub bytes: u64,
    /// When it was handed to the kernel, in nanoseconds.
    pub start_ns: u64,
    /// When it was known to be done, in nanoseconds.
    pub end_ns: u64,
}

/// The requests still to come, and the clock: state shared by both engines.
pub(crate) struct RequestSupply<'a, I> {
    requests: I,
    target: &'a MeasuredTarget,
    stop: &'a AtomicBool,
    start: Instant,
    time: Duration,
    next: u64,
}

impl<'a, I: Iterator<Item = Request>> RequestSupply<'a, I> {
    pub(crate) fn new(
        target: &'a MeasuredTarget,
        requests: I,
        limit: ProbeLimit,
        stop: &'a AtomicBool,
    ) -> Self {
        Self {
            requests,
            target,
            stop,
            start: Instant::now(),
            time: limit.time,
            next: 0,
        }
    }

    /// Time since the first request, in nanoseconds.
    pub(crate) fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// The next request, as if it were done at once, and its first byte; `None` when there is none or time is up.
    pub(crate) fn next(&mut self) -> Result<Option<(DoneRequest, u64)>, ProbeError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ProbeError::Stopped);
        }
        let now_ns = self.now_ns();
        if u128::from(now_ns) >= self.time.as_nanos() {
            return Ok(None);
        }
        let Some(request) = self.requests.next() else {
            return Ok(None);
        };
        self.target.check(&request)?;
        let number = self.next;
        self.next += 1;
        let flush = request.op == Op::Flush;
        let bytes = if flush {
            0
        } else {
            u64::from(request.sectors) * SECTOR_BYTES
        };
        let done = DoneRequest {
            number,
            op: request.op,
            bytes,
            start_ns: now_ns,
            end_ns: now_ns,
        };
        Ok(Some((
            done,
            if flush {
                0
            } else {
                request.sector * SECTOR_BYTES
            },
        )))
    }
}

/// The error of a request that returned `result`: a negative error number, or fewer bytes than asked.
pub(crate) fn request_error(
    done: &DoneRequest,
    offset: u64,
    result: i64,
) -> Result<(), ProbeError> {
    if result >= 0 && (done.op == Op::Flush || result as u64 == done.bytes) {
        return Ok(());
    }
    let error = if result < 0 {
        std::io::Error::from_raw_os_error(-result as i32)
    } else {
        std::io::Error::other(format!("only {result} bytes"))
    };
    let what = match done.op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush | Op::Discard => "flush",
    };
    Err(ProbeError::Request {
        what,
        bytes: done.bytes,
        offset,
        error,
    })
}

// Consumers of the times of requests.

/// Takes every completed request, in the order in which completions were seen.
pub trait CompletionSink {
    /// One request.
    fn done(&mut self, done: &DoneRequest);
}

/// Ignores them.
impl CompletionSink for () {
    fn done(&mut self, _done: &DoneRequest) {}
}

/// Every single time, in order of completion.
#[derive(Debug, Default)]
pub struct RequestTimes(pub Vec<DoneRequest>);

impl CompletionSink for RequestTimes {
    fn done(&mut self, done: &DoneRequest) {
        self.0.push(*done);
    }
}

/// Counts and distributions by operation.
#[derive(Debug)]
pub struct CountedRequests {
    reads: LatencyHistogram,
    writes: LatencyHistogram,
    flushes: LatencyHistogram,
    bytes: u64,
}

/// Results of one run.
#[derive(Clone, Debug, Serialize)]
pub struct MeasuredRun {
    /// Reads and writes.
    pub requests: u64,
    /// Transferred.
    pub bytes: u64,
    /// From the first request to the last completion.
    pub elapsed_s: f64,
    /// Latency of reads, if there were any.
    pub read: Option<LatencyPercentiles>,
    /// Latency of writes, if there were any.
    pub write: Option<LatencyPercentiles>,
    /// Latency of flushes, if there were any.
    pub flush: Option<LatencyPercentiles>,
}

impl CountedRequests {
    /// Nothing counted yet.
    #[expect(clippy::new_without_default, reason = "histograms are made on purpose")]
    pub fn new() -> Self {
        Self {
            reads: LatencyHistogram::new(),
            writes: LatencyHistogram::new(),
            flushes: LatencyHistogram::new(),
            bytes: 0,
        }
    }

    /// The sums of a run that took `elapsed_ns`.
    pub fn measured(&self, elapsed_ns: u64) -> MeasuredRun {
        MeasuredRun {
            requests: self.reads.count() + self.writes.count(),
            bytes: self.bytes,
            elapsed_s: elapsed_ns as f64 / 1e9,
            read: self.reads.summary(),
            write: self.writes.summary(),
            flush: self.flushes.summary(),
        }
    }
}

impl CompletionSink for CountedRequests {
    fn done(&mut self, done: &DoneRequest) {
        let times = match done.op {
            Op::Read => &mut self.reads,
            Op::Write => &mut self.writes,
            Op::Flush | Op::Discard => &mut self.flushes,
        };
        times.record(done.end_ns - done.start_ns);
        self.bytes += done.bytes;
    }
}

// A pattern on a target: one line of a benchmark.

/// Serves a pattern for a time and sums up; flushes of the pattern are real ones.
///
/// # Errors
/// A target smaller than one block, a block that is no multiple of a sector, and as [`run_requests`].
pub fn measure_pattern(
    target: &MeasuredTarget,
    engine: ProbeEngine,
    pattern: &Pattern,
    seed: u64,
    time: Duration,
    stop: &AtomicBool,
) -> Result<MeasuredRun, ProbeError> {
    let span_sectors = target.size_bytes() / SECTOR_BYTES;
    if span_sectors < u64::from(pattern.block_sectors()) {
        return Err(ProbeError::BadRequest(format!(
            "{} bytes have no room for a block of {}",
            target.size_bytes(),
            pattern.block_bytes
        )));
    }
    let limit = ProbeLimit {
        depth: pattern.depth,
        time,
    };
    let requests = pattern.requests(span_sectors, seed);
    let mut counted = CountedRequests::new();
    let elapsed_ns = run_requests(
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
/// As [`run_requests`].
pub fn time_listed_requests(
    target: &MeasuredTarget,
    engine: ProbeEngine,
    requests: &[Request],
    limit: ProbeLimit,
    stop: &AtomicBool,
) -> Result<Vec<crate::DoneRequest>, ProbeError> {
    let largest = requests.iter().map(|request| request.sectors).max();
    let block_bytes = largest.unwrap_or(0) * SECTOR_BYTES as u32;
    let mut done = crate::RequestTimes::default();
    run_requests(
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
