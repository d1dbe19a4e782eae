//! The loop that owns virtual time.

use tierwise_device::{Completion, Device, Nanos, Written};

use crate::clock::CpuMeter;
use crate::compare::Pairs;
use crate::feed::Feed;
use crate::outstanding::{InFlight, Outstanding};
use crate::pace::Arrivals;
use crate::report::Totals;
use crate::tally::Tallies;
use crate::{Pace, Report, Source, TimesFile, UserError};

/// Requests without any virtual time after which none is expected to pass.
const AT_ONCE_MOST: u64 = 100_000;

/// Between which virtual times requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// When virtual time begins, in nanoseconds: 0, or where the run before on the same device ended.
    pub start_ns: Nanos,
    /// No request arrives from here on, in nanoseconds.
    pub until_ns: Nanos,
}

impl Default for Limits {
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
pub fn run(
    device: &mut dyn Device,
    source: &mut dyn Source,
    pace: Pace,
    limits: Limits,
    times: Option<&mut TimesFile>,
) -> Result<Report, UserError> {
    let feed = Feed::new(source);
    let arrivals = Arrivals::new(pace, limits.start_ns);
    let mut run = Run {
        written_before: device.written(),
        device,
        feed,
        arrivals,
        limits,
        times,
        outstanding: Outstanding::default(),
        tallies: Tallies::new(),
        pairs: Pairs::default(),
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

struct Run<'a> {
    device: &'a mut dyn Device,
    feed: Feed<'a>,
    arrivals: Arrivals,
    limits: Limits,
    times: Option<&'a mut TimesFile>,
    outstanding: Outstanding,
    tallies: Tallies,
    pairs: Pairs,
    completions: Vec<Completion>,
    now: Nanos,
    submitted: u64,
    first_arrival_ns: Nanos,
    busy_since_ns: Nanos,
    busy_ns: Nanos,
    written_before: Written,
    cpu: CpuMeter,
}

impl Run<'_> {
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
        let id = self.outstanding.add(InFlight {
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

    fn report(mut self) -> Result<Report, UserError> {
        let written = self.device.written();
        Report::of(&Totals {
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
