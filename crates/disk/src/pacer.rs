//! Drives a model from a clock that is not the model's own.
//!
//! The path between the user of a disk and its server takes time that a real disk would not. A request whose
//! model time is `t` is therefore answered at `t - path`, so that the user sees the answer at `t`. To know
//! early what happens at `t`, the model's clock runs ahead of the real one, by at most `path`, but never
//! further than the event that it is asked for. A request that arrives meanwhile gets the model's time: it
//! was on its way while that event happened.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use tierwise_device::{Completion, Device, Nanos, Op, Request, RequestId, WrittenSectors};

/// A request on its way to the model; `reply` is the sender's data for the answer.
pub struct ArrivedRequest<R> {
    /// Number of the partition that counts it.
    pub partition: usize,
    /// The request, in sectors of the whole device.
    pub request: Request,
    /// How to answer.
    pub reply: R,
}

/// Data of a request that is counted when it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedRequest {
    /// Number of the partition that counts it.
    pub partition: usize,
    /// What it was.
    pub request: Request,
    /// When it arrived.
    pub arrived: Nanos,
    /// When its answer was due; `None` if it was not paced.
    pub due: Option<Nanos>,
}

/// A request whose answer is due now.
pub struct DueAnswer<R> {
    /// Data to count.
    pub served: CountedRequest,
    /// How to answer.
    pub reply: R,
}

impl<R> ArrivedRequest<R> {
    /// The request as one whose answer is due now, at the time that it arrives.
    pub fn at_once(self, now: Nanos) -> DueAnswer<R> {
        let served = CountedRequest {
            partition: self.partition,
            request: self.request,
            arrived: now,
            due: None,
        };
        DueAnswer {
            served,
            reply: self.reply,
        }
    }
}

/// A model, the requests inside it, and the relation of its clock to the real one.
pub struct Pacer<R> {
    device: Box<dyn Device>,
    path: Nanos,
    timing: bool,
    model_now: Nanos,
    slowdown: SlowPhaseClock,
    next_id: RequestId,
    waiting: HashMap<RequestId, DueAnswer<R>>,
    completions: Vec<Completion>,
}

impl<R> Pacer<R> {
    /// A pacer for an idle device behind a path that takes `path` nanoseconds.
    pub fn new(device: Box<dyn Device>, path: Nanos) -> Self {
        Self {
            device,
            path,
            timing: true,
            model_now: 0,
            slowdown: SlowPhaseClock::default(),
            next_id: 0,
            waiting: HashMap::with_capacity(1024),
            completions: Vec::with_capacity(1024),
        }
    }

    /// Takes a request at real time `now`, and appends the requests whose answers are due.
    pub fn submit(&mut self, now: Nanos, arrival: ArrivedRequest<R>, done: &mut Vec<DueAnswer<R>>) {
        let request = arrival.request;
        if !self.timing {
            self.device.preload(&request);
            done.push(arrival.at_once(now));
            return;
        }
        self.run_until(now);
        self.model_now = self.model_now.max(self.slowdown.to_model(now));
        self.waiting.insert(self.next_id, arrival.at_once(now));
        self.device.submit(self.model_now, self.next_id, request);
        self.next_id += 1;
        self.advance(now, done);
    }

    /// Lets the model go on to real time `now`, and appends the requests whose answers are due.
    pub fn advance(&mut self, now: Nanos, done: &mut Vec<DueAnswer<R>>) {
        self.run_until(now + self.path);
        for completion in self.completions.drain(..) {
            // A request that was answered when timing went off is no longer waiting.
            if let Some(mut answer) = self.waiting.remove(&completion.id) {
                let due = self.slowdown.to_real(completion.at);
                let due = due.saturating_sub(self.path);
                answer.served.due = Some(due.max(answer.served.arrived));
                done.push(answer);
            }
        }
    }

    /// Real time at which [`Pacer::advance`] has something to do, or `None` while the device is idle.
    pub fn next_due(&self) -> Option<Nanos> {
        self.device
            .next_event()
            .map(|event| self.slowdown.to_real(event).saturating_sub(self.path))
    }

    /// Lets the device take `factor` times as long for everything, for a while from now on.
    pub fn slow(&mut self, now: Nanos, factor: f64, length: Nanos) {
        self.slowdown.start(now, factor, length);
    }

    /// Aborts every request that waits. The model still completes its work.
    pub fn abort(&mut self, done: &mut Vec<DueAnswer<R>>) {
        done.extend(self.waiting.drain().map(|(_, answer)| answer));
    }

    /// Sectors that the device has written since it was built.
    pub fn written(&self) -> WrittenSectors {
        self.device.written()
    }

    /// Switches between the model's pace and none; requests that wait are answered when it goes off.
    pub fn set_timing(&mut self, on: bool, now: Nanos, done: &mut Vec<DueAnswer<R>>) {
        self.timing = on;
        if !on {
            self.abort(done);
            self.run_until(now);
        }
    }

    /// Changes the path latency that is compensated for.
    pub fn set_path(&mut self, path: Nanos) {
        self.path = path;
    }

    /// Lets the model do everything that is due by a real time.
    fn run_until(&mut self, real: Nanos) {
        let limit = self.slowdown.to_model(real);
        while let Some(event) = self.device.next_event().filter(|&event| event <= limit) {
            self.model_now = self.model_now.max(event);
            self.device.advance(self.model_now, &mut self.completions);
        }
    }
}

// A disk that is slow for a while: the model's clock runs slower than the real one.

/// The relation of the model's clock to the real one. Outside a slow phase both run at the same rate.
#[derive(Default)]
pub(crate) struct SlowPhaseClock {
    real: Nanos,
    model: Nanos,
    length: Nanos,
    factor: f64,
}

impl SlowPhaseClock {
    /// Starts a slow phase of `length` at real time `now`, in place of one that may be under way.
    pub fn start(&mut self, now: Nanos, factor: f64, length: Nanos) {
        *self = Self {
            real: now,
            model: self.to_model(now),
            length,
            factor,
        };
    }

    /// How far the model gets in the slow phase.
    fn model_length(&self) -> Nanos {
        if self.length == 0 {
            return 0;
        }
        (self.length as f64 / self.factor) as Nanos
    }

    pub fn to_model(&self, real: Nanos) -> Nanos {
        let Some(passed) = real.checked_sub(self.real) else {
            return self.model.saturating_sub(self.real - real);
        };
        if passed < self.length {
            return self.model + (passed as f64 / self.factor) as Nanos;
        }
        self.model + self.model_length() + (passed - self.length)
    }

    pub fn to_real(&self, model: Nanos) -> Nanos {
        let Some(passed) = model.checked_sub(self.model) else {
            return self.real.saturating_sub(self.model - model);
        };
        let model_length = self.model_length();
        if passed < model_length {
            // Rounded up: at this time the model has got there.
            return self.real + (passed as f64 * self.factor).ceil() as Nanos;
        }
        self.real + self.length + (passed - model_length)
    }
}

// Injected faults of a disk: it dies at some moment, or cannot read some sectors.

/// Faults of one disk.
pub(crate) struct DiskFaults {
    dies_at: Nanos,
    /// Requests that it takes before it dies.
    requests_left: Option<u64>,
    unreadable: Vec<RangeInclusive<u64>>,
}

impl DiskFaults {
    pub fn none() -> Self {
        Self {
            dies_at: Nanos::MAX,
            requests_left: None,
            unreadable: Vec::new(),
        }
    }

    /// From this time on every request fails.
    pub fn die_at(&mut self, time: Nanos) {
        self.dies_at = time;
    }

    /// After this number of further requests every request fails.
    pub fn die_after(&mut self, requests: u64) {
        self.requests_left = Some(requests);
    }

    pub fn dead(&self, now: Nanos) -> bool {
        now >= self.dies_at
    }

    /// Counts a request that arrives; returns whether the disk is still alive to take it.
    pub fn take(&mut self, now: Nanos) -> bool {
        if let Some(left) = &mut self.requests_left {
            if *left == 0 {
                self.dies_at = self.dies_at.min(now);
            }
            *left = left.saturating_sub(1);
        }
        !self.dead(now)
    }

    /// Reads of these sectors fail until something is written there.
    pub fn make_unreadable(&mut self, sectors: RangeInclusive<u64>) {
        self.unreadable.push(sectors);
    }

    /// Whether a completed request succeeds. One that replaces sectors makes them readable: a real disk then
    /// puts good sectors in their place.
    pub fn let_through(&mut self, request: &Request) -> bool {
        if request.op == Op::Flush || self.unreadable.is_empty() {
            return true;
        }
        let (first, end) = (request.sector, request.sector + u64::from(request.sectors));
        if request.op == Op::Read {
            let mut unreadable = self.unreadable.iter();
            return !unreadable.any(|range| *range.start() < end && *range.end() >= first);
        }
        self.unreadable = self
            .unreadable
            .drain(..)
            .flat_map(|range| range_remainder(range, first, end))
            .collect();
        true
    }
}

/// The parts of a range outside the sectors from `first` to before `end`.
fn range_remainder(
    range: RangeInclusive<u64>,
    first: u64,
    end: u64,
) -> impl Iterator<Item = RangeInclusive<u64>> {
    let (start, last) = range.into_inner();
    let before = (start < first).then(|| start..=last.min(first - 1));
    let after = (last >= end).then(|| start.max(end)..=last);
    before.into_iter().chain(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_agree_until_a_slow_phase_and_keep_their_distance_after_it() {
        let mut slowdown = SlowPhaseClock::default();
        assert_eq!(slowdown.to_model(7), 7);
        slowdown.start(1_000, 10.0, 500);
        assert_eq!(slowdown.to_model(900), 900);
        assert_eq!(slowdown.to_model(1_100), 1_010);
        assert_eq!(slowdown.to_model(1_500), 1_050);
        assert_eq!(slowdown.to_model(2_000), 1_550);
    }

    #[test]
    fn an_event_is_due_when_the_model_has_got_there() {
        let mut slowdown = SlowPhaseClock::default();
        slowdown.start(1_000, 7.3, 600);
        slowdown.start(1_200, 1_000.0, 900);
        for model in (900..3_000).step_by(7) {
            let real = slowdown.to_real(model);
            assert!(
                slowdown.to_model(real) >= model,
                "at {real} the model is not at {model}"
            );
            assert!(
                real <= 1_000 || slowdown.to_model(real - 1) <= model,
                "due too late: {real}"
            );
        }
    }

    fn request(op: Op, sector: u64, sectors: u32) -> Request {
        let fua = false;
        Request {
            op,
            sector,
            sectors,
            fua,
        }
    }

    #[test]
    fn an_unreadable_sector_fails_reads_until_it_is_written() {
        let mut faults = DiskFaults::none();
        faults.make_unreadable(10..=19);
        let readable = |faults: &mut DiskFaults, sector, sectors| {
            faults.let_through(&request(Op::Read, sector, sectors))
        };
        assert!(readable(&mut faults, 0, 10) && readable(&mut faults, 20, 8));
        assert!(!readable(&mut faults, 9, 2) && !readable(&mut faults, 19, 1));
        assert!(!readable(&mut faults, 0, 100));
        assert!(faults.let_through(&request(Op::Write, 12, 3)) && readable(&mut faults, 12, 3));
        assert!(!readable(&mut faults, 11, 1) && !readable(&mut faults, 15, 1));
        assert!(faults.let_through(&request(Op::Flush, 0, u32::MAX)));
        assert!(!readable(&mut faults, 11, 1));
        assert!(faults.let_through(&request(Op::Discard, 0, 100)) && readable(&mut faults, 0, 100));
    }

    #[test]
    fn a_disk_dies_after_so_many_requests_or_at_a_time() {
        let mut faults = DiskFaults::none();
        assert!(faults.take(5) && !faults.dead(u64::MAX - 1));
        faults.die_after(2);
        assert!(faults.take(6) && faults.take(7) && !faults.dead(8));
        assert!(!faults.take(9) && faults.dead(9) && !faults.take(10));
        let mut faults = DiskFaults::none();
        faults.die_at(100);
        assert!(faults.take(99) && !faults.take(100));
    }
}
