//! The loop that owns virtual time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use tierwise_device::{Completion, Device, Nanos, Request, RequestId, WrittenSectors};

use crate::simulation_report::ServiceTimePairs;
use crate::simulation_report::{OpTallies, RunTotals};
use crate::{ServiceTimesFile, SimulationReport, UserError};

/// Requests without any virtual time after which none is expected to pass.
const AT_ONCE_MOST: u64 = 100_000;

/// Between which virtual times requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivalLimits {
    /// When virtual time begins, in nanoseconds: 0, or where the run before on the same device ended.
    pub start_ns: Nanos,
    /// No request arrives from here on, in nanoseconds.
    pub until_ns: Nanos,
}

impl Default for ArrivalLimits {
    fn default() -> Self {
        Self {
            start_ns: 0,
            until_ns: Nanos::MAX,
        }
    }
}

/// Puts the requests of `source` to `device` and returns when the last has completed.
///
/// # Errors
/// A source that fails or is empty; a file of times that cannot be written.
pub fn simulate_requests(
    device: &mut dyn Device,
    source: &mut dyn RequestSource,
    pace: ArrivalPace,
    limits: ArrivalLimits,
    times: Option<&mut ServiceTimesFile>,
) -> Result<SimulationReport, UserError> {
    let feed = RequestFeed::new(source);
    let arrivals = RunArrivals::new(pace, limits.start_ns);
    let mut run = SimulationLoop {
        written_before: device.written(),
        device,
        feed,
        arrivals,
        limits,
        times,
        outstanding: OutstandingRequests::default(),
        tallies: OpTallies::new(),
        pairs: ServiceTimePairs::default(),
        completions: Vec::with_capacity(1024),
        now: limits.start_ns,
        submitted: 0,
        first_arrival_ns: 0,
        busy_since_ns: 0,
        busy_ns: 0,
        cpu: CpuMeter::started(),
    };
    run.drive()?;
    run.report()
}

struct SimulationLoop<'a> {
    device: &'a mut dyn Device,
    feed: RequestFeed<'a>,
    arrivals: RunArrivals,
    limits: ArrivalLimits,
    times: Option<&'a mut ServiceTimesFile>,
    outstanding: OutstandingRequests,
    tallies: OpTallies,
    pairs: ServiceTimePairs,
    completions: Vec<Completion>,
    now: Nanos,
    submitted: u64,
    first_arrival_ns: Nanos,
    busy_since_ns: Nanos,
    busy_ns: Nanos,
    written_before: WrittenSectors,
    cpu: CpuMeter,
}

impl SimulationLoop<'_> {
    fn drive(&mut self) -> Result<(), UserError> {
        loop {
            if self.feed.is_low() {
                self.refill()?;
            }
            let arrival = self.arrivals.next(&self.feed);
            if arrival.is_some_and(|at| at >= self.limits.until_ns) {
                self.feed.end();
                continue;
            }
            if arrival.is_none() && self.outstanding.len() == 0 {
                break;
            }
            // Events inside the device at the moment of an arrival come before the arrival.
            match (arrival, self.device.next_event()) {
                (Some(at), event) if event.is_none_or(|event| event > at) => self.submit(at),
                (_, event) => self.advance(event.expect("a busy device has a next event")),
            }
        }
        self.cpu.stop();
        self.times.as_mut().map_or(Ok(()), |times| times.finish())
    }

    /// Reads requests and writes times; neither counts as simulating.
    fn refill(&mut self) -> Result<(), UserError> {
        self.cpu.stop();
        self.require_time_to_pass()?;
        self.feed.refill()?;
        if let Some(times) = &mut self.times {
            times.write_complete()?;
        }
        self.cpu.start();
        Ok(())
    }

    /// A device that answers at once never reaches the end of a time.
    fn require_time_to_pass(&self) -> Result<(), UserError> {
        let timed = self.limits.until_ns < Nanos::MAX;
        if timed && self.submitted >= AT_ONCE_MOST && self.now == self.limits.start_ns {
            return Err(UserError::new(
                "--duration: the device answers at once, so that no virtual time passes",
                "give --count",
            ));
        }
        Ok(())
    }

    fn submit(&mut self, at: Nanos) {
        let Some(asked) = self.feed.take() else {
            return;
        };
        self.now = self.now.max(at);
        if self.submitted == 0 {
            self.first_arrival_ns = self.now;
        }
        if self.outstanding.len() == 0 {
            self.busy_since_ns = self.now;
        }
        let id = self.outstanding.add(RequestInFlight {
            asked,
            submitted_ns: self.now,
            number: self.submitted,
        });
        self.submitted += 1;
        self.arrivals.arrived();
        self.device.submit(self.now, id, asked.request);
    }

    fn advance(&mut self, event: Nanos) {
        self.now = self.now.max(event);
        let mut completions = std::mem::take(&mut self.completions);
        self.device.advance(self.now, &mut completions);
        for completion in completions.drain(..) {
            self.complete(completion);
        }
        self.completions = completions;
    }

    fn complete(&mut self, completion: Completion) {
        let done = self.outstanding.take(completion.id);
        let service_ns = completion.at - done.submitted_ns;
        let request = done.asked.request;
        self.tallies.record(&request, service_ns);
        self.arrivals.completed(self.now, done.asked.think_ns);
        if self.outstanding.len() == 0 {
            self.busy_ns += completion.at - self.busy_since_ns;
        }
        if let Some(measured_ns) = done.asked.measured_ns {
            self.pairs.record(measured_ns, service_ns);
        }
        if let Some(times) = &mut self.times {
            times.record(done.number, request, done.submitted_ns, service_ns);
        }
    }

    fn report(mut self) -> Result<SimulationReport, UserError> {
        let written = self.device.written();
        SimulationReport::of(&RunTotals {
            tallies: &self.tallies,
            first_arrival_ns: self.first_arrival_ns,
            end_ns: self.now,
            busy_ns: self.busy_ns,
            written: written - self.written_before,
            cpu_ns: self.cpu.used_ns(),
            compared: self.pairs.comparison(),
        })
        .ok_or_else(|| UserError::new("no request to simulate", "ask for at least one"))
    }
}

// Requests that the device has not completed yet.

/// A request in the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestInFlight {
    pub(crate) asked: TimedRequest,
    pub(crate) submitted_ns: Nanos,
    /// Its place in the order of the source, from 0.
    pub(crate) number: u64,
}

/// A table of them, whose index is the request's id; it grows to the largest number outstanding at a time.
#[derive(Debug, Default)]
pub(crate) struct OutstandingRequests {
    table: Vec<RequestInFlight>,
    free: Vec<usize>,
}

impl OutstandingRequests {
    pub(crate) fn len(&self) -> usize {
        self.table.len() - self.free.len()
    }

    pub(crate) fn add(&mut self, request: RequestInFlight) -> RequestId {
        match self.free.pop() {
            Some(index) => {
                self.table[index] = request;
                index as RequestId
            }
            None => {
                self.table.push(request);
                (self.table.len() - 1) as RequestId
            }
        }
    }

    pub(crate) fn take(&mut self, id: RequestId) -> RequestInFlight {
        self.free.push(id as usize);
        self.table[id as usize]
    }
}

// When requests arrive: closed or open loop.

/// When requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalPace {
    /// A number of clients, each with one request outstanding; it asks again its think time after a
    /// completion.
    Closed {
        /// Number of clients, at least 1.
        depth: u32,
    },
    /// At the times that the source gives, independent of the device.
    Open,
}

/// The arrivals of a run.
#[derive(Debug)]
pub(crate) enum RunArrivals {
    /// When each idle client asks next.
    Closed(BinaryHeap<Reverse<Nanos>>),
    Open,
}

impl RunArrivals {
    pub(crate) fn new(pace: ArrivalPace, start_ns: Nanos) -> Self {
        match pace {
            ArrivalPace::Closed { depth } => {
                Self::Closed((0..depth).map(|_| Reverse(start_ns)).collect())
            }
            ArrivalPace::Open => Self::Open,
        }
    }

    /// When the next request arrives, or `None` if that depends on a completion or there is none.
    pub(crate) fn next(&self, feed: &RequestFeed<'_>) -> Option<Nanos> {
        let asked = feed.peek()?;
        match self {
            Self::Closed(ready) => ready.peek().map(|&Reverse(at)| at),
            Self::Open => Some(asked.arrival_ns),
        }
    }

    pub(crate) fn arrived(&mut self) {
        if let Self::Closed(ready) = self {
            ready.pop();
        }
    }

    pub(crate) fn completed(&mut self, at: Nanos, think_ns: Nanos) {
        if let Self::Closed(ready) = self {
            ready.push(Reverse(at + think_ns));
        }
    }
}

// The CPU time of a thread.

/// CPU time that the calling thread has used, in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for one timespec.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "every Linux has this clock");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Adds up CPU time between starts and stops.
#[derive(Debug)]
pub(crate) struct CpuMeter {
    started_ns: u64,
    used_ns: u64,
}

impl CpuMeter {
    pub(crate) fn started() -> Self {
        Self {
            started_ns: thread_cpu_ns(),
            used_ns: 0,
        }
    }

    pub(crate) fn stop(&mut self) {
        self.used_ns += thread_cpu_ns() - self.started_ns;
    }

    pub(crate) fn start(&mut self) {
        self.started_ns = thread_cpu_ns();
    }

    pub(crate) fn used_ns(&self) -> u64 {
        self.used_ns
    }
}

// Where requests come from, in batches, so that reading them is not counted as simulating them.

/// A request and the times that its source gives for it, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedRequest {
    /// The request.
    pub request: Request,
    /// Between its completion and the request that takes its place in a closed loop.
    pub think_ns: Nanos,
    /// When it arrives in an open loop.
    pub arrival_ns: Nanos,
    /// The service time that was measured elsewhere.
    pub measured_ns: Option<Nanos>,
}

/// Requests, one after another.
pub trait RequestSource {
    /// The next request, or `None` after the last.
    ///
    /// # Errors
    /// Input that cannot be read or makes no sense.
    fn next(&mut self) -> Result<Option<TimedRequest>, UserError>;
}

/// A number of requests of an endless stream, without a time of arrival.
#[derive(Debug)]
pub struct LimitedSource<I> {
    requests: I,
    left: u64,
    think_ns: Nanos,
}

impl<I: Iterator<Item = Request>> LimitedSource<I> {
    /// The first `count` of these, with this time between them.
    pub fn new(requests: I, count: u64, think_ns: Nanos) -> Self {
        Self {
            requests,
            left: count,
            think_ns,
        }
    }
}

impl<I: Iterator<Item = Request>> RequestSource for LimitedSource<I> {
    fn next(&mut self) -> Result<Option<TimedRequest>, UserError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        Ok(self.requests.next().map(|request| TimedRequest {
            request,
            think_ns: self.think_ns,
            arrival_ns: 0,
            measured_ns: None,
        }))
    }
}

/// A source that ends early on request.
pub(crate) struct StoppableSource<'a> {
    pub(crate) source: Box<dyn RequestSource>,
    pub(crate) stop: &'a AtomicBool,
}

impl RequestSource for StoppableSource<'_> {
    fn next(&mut self) -> Result<Option<TimedRequest>, UserError> {
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        self.source.next()
    }
}

const BATCH: usize = 4096;

/// The next requests of a source.
pub(crate) struct RequestFeed<'a> {
    source: &'a mut dyn RequestSource,
    batch: VecDeque<TimedRequest>,
    ended: bool,
}

impl<'a> RequestFeed<'a> {
    pub(crate) fn new(source: &'a mut dyn RequestSource) -> Self {
        Self {
            source,
            batch: VecDeque::with_capacity(BATCH),
            ended: false,
        }
    }

    /// Whether [`RequestFeed::refill`] has to be called before the next request is known.
    pub(crate) fn is_low(&self) -> bool {
        self.batch.is_empty() && !self.ended
    }

    pub(crate) fn refill(&mut self) -> Result<(), UserError> {
        while self.batch.len() < BATCH && !self.ended {
            match self.source.next()? {
                Some(asked) => self.batch.push_back(asked),
                None => self.ended = true,
            }
        }
        Ok(())
    }

    pub(crate) fn peek(&self) -> Option<&TimedRequest> {
        self.batch.front()
    }

    pub(crate) fn take(&mut self) -> Option<TimedRequest> {
        self.batch.pop_front()
    }

    /// The source has ended.
    pub(crate) fn end(&mut self) {
        self.batch.clear();
        self.ended = true;
    }
}
