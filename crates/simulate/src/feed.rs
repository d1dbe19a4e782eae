//! Where requests come from, in batches, so that reading them is not counted as simulating them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use tierwise_device::{Nanos, Request};

use crate::UserError;

/// A request and the times that its source gives for it, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
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
pub trait Source {
    /// The next request, or `None` after the last.
    ///
    /// # Errors
    /// Input that cannot be read or makes no sense.
    fn next(&mut self) -> Result<Option<Asked>, UserError>;
}

/// A number of requests of an endless stream, without a time of arrival.
#[derive(Debug)]
pub struct Limited<I> {
    requests: I,
    left: u64,
    think_ns: Nanos,
}

impl<I: Iterator<Item = Request>> Limited<I> {
    /// The first `count` of these, with this time between them.
    pub fn new(requests: I, count: u64, think_ns: Nanos) -> Self {
        Self {
            requests,
            left: count,
            think_ns,
        }
    }
}

impl<I: Iterator<Item = Request>> Source for Limited<I> {
    fn next(&mut self) -> Result<Option<Asked>, UserError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        Ok(self.requests.next().map(|request| Asked {
            request,
            think_ns: self.think_ns,
            arrival_ns: 0,
            measured_ns: None,
        }))
    }
}

/// A source that ends early on request.
pub(crate) struct Stoppable<'a> {
    pub(crate) source: Box<dyn Source>,
    pub(crate) stop: &'a AtomicBool,
}

impl Source for Stoppable<'_> {
    fn next(&mut self) -> Result<Option<Asked>, UserError> {
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        self.source.next()
    }
}

const BATCH: usize = 4096;

/// The next requests of a source.
pub(crate) struct Feed<'a> {
    source: &'a mut dyn Source,
    batch: VecDeque<Asked>,
    ended: bool,
}

impl<'a> Feed<'a> {
    pub(crate) fn new(source: &'a mut dyn Source) -> Self {
        Self {
            source,
            batch: VecDeque::with_capacity(BATCH),
            ended: false,
        }
    }

    /// Whether [`Feed::refill`] has to be called before the next request is known.
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

    pub(crate) fn peek(&self) -> Option<&Asked> {
        self.batch.front()
    }

    pub(crate) fn take(&mut self) -> Option<Asked> {
        self.batch.pop_front()
    }

    /// The source has ended.
    pub(crate) fn end(&mut self) {
        self.batch.clear();
        self.ended = true;
    }
}
