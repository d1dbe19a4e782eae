//! Drives a model from a clock that is not the model's own.
//!
//! The path between the user of a disk and its server takes time that a real disk would not. A request whose
//! model time is `t` is therefore answered at `t - path`, so that the user sees the answer at `t`. To know
//! early what happens at `t`, the model's clock runs ahead of the real one, by at most `path`, but never
//! further than the event that it is asked for. A request that arrives meanwhile gets the model's time: it
//! was on its way while that event happened.

use std::collections::HashMap;

use tierwise_device::{Completion, Device, Nanos, Request, RequestId, Written};

/// A request on its way to the model; `reply` is the sender's data for the answer.
pub struct Arrival<R> {
    /// Number of the partition that counts it.
    pub partition: usize,
    /// The request, in sectors of the whole device.
    pub request: Request,
    /// How to answer.
    pub reply: R,
}

/// Data of a request that is counted when it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
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
pub struct Done<R> {
    /// Data to count.
    pub served: Served,
    /// How to answer.
    pub reply: R,
}

impl<R> Arrival<R> {
    /// The request as one whose answer is due now, at the time that it arrives.
    pub fn at_once(self, now: Nanos) -> Done<R> {
        let served = Served {
            partition: self.partition,
            request: self.request,
            arrived: now,
            due: None,
        };
        Done {
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
    slowdown: Slowdown,
    next_id: RequestId,
    waiting: HashMap<RequestId, Done<R>>,
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
            slowdown: Slowdown::default(),
            next_id: 0,
            waiting: HashMap::with_capacity(1024),
            completions: Vec::with_capacity(1024),
        }
    }

    /// Takes a request at real time `now`, and appends the requests whose answers are due.
    pub fn submit(&mut self, now: Nanos, arrival: Arrival<R>, done: &mut Vec<Done<R>>) {
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
    pub fn advance(&mut self, now: Nanos, done: &mut Vec<Done<R>>) {
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
    pub fn abort(&mut self, done: &mut Vec<Done<R>>) {
        done.extend(self.waiting.drain().map(|(_, answer)| answer));
    }

    /// Sectors that the device has written since it was built.
    pub fn written(&self) -> Written {
        self.device.written()
    }

    /// Switches between the model's pace and none; requests that wait are answered when it goes off.
    pub fn set_timing(&mut self, on: bool, now: Nanos, done: &mut Vec<Done<R>>) {
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
pub(crate) struct Slowdown {
    real: Nanos,
    model: Nanos,
    length: Nanos,
    factor: f64,
}

impl Slowdown {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_agree_until_a_slow_phase_and_keep_their_distance_after_it() {
        let mut slowdown = Slowdown::default();
        assert_eq!(slowdown.to_model(7), 7);
        slowdown.start(1_000, 10.0, 500);
        assert_eq!(slowdown.to_model(900), 900);
        assert_eq!(slowdown.to_model(1_100), 1_010);
        assert_eq!(slowdown.to_model(1_500), 1_050);
        assert_eq!(slowdown.to_model(2_000), 1_550);
    }

    #[test]
    fn an_event_is_due_when_the_model_has_got_there() {
        let mut slowdown = Slowdown::default();
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
}
