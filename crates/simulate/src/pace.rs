//! When requests arrive: closed or open loop.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tierwise_device::Nanos;

use crate::feed::Feed;

/// When requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
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
pub(crate) enum Arrivals {
    /// When each idle client asks next.
    Closed(BinaryHeap<Reverse<Nanos>>),
    Open,
}

impl Arrivals {
    pub(crate) fn new(pace: Pace, start_ns: Nanos) -> Self {
        match pace {
            Pace::Closed { depth } => Self::Closed((0..depth).map(|_| Reverse(start_ns)).collect()),
            Pace::Open => Self::Open,
        }
    }

    /// When the next request arrives, or `None` if that depends on a completion or there is none.
    pub(crate) fn next(&self, feed: &Feed<'_>) -> Option<Nanos> {
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
