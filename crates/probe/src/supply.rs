//! State shared by both engines: the requests still to come, those that are done, and the clock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tierwise_device::{Op, Request, SECTOR_BYTES};

use crate::{ProbeError, Target};

/// When no further request is started; those in flight are waited for.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Requests in flight at once.
    pub depth: u32,
    /// Longest time, counted from the first request.
    pub time: Duration,
}

/// A request that is done, with times since the first request of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
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
pub(crate) struct Supply<'a, I> {
    requests: I,
    target: &'a Target,
    stop: &'a AtomicBool,
    start: Instant,
    time: Duration,
    next: u64,
}

impl<'a, I: Iterator<Item = Request>> Supply<'a, I> {
    pub(crate) fn new(target: &'a Target, requests: I, limit: Limit, stop: &'a AtomicBool) -> Self {
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
    pub(crate) fn next(&mut self) -> Result<Option<(Done, u64)>, ProbeError> {
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
        let done = Done {
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
pub(crate) fn outcome(done: &Done, offset: u64, result: i64) -> Result<(), ProbeError> {
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
