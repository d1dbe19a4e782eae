//! The command queue: which command the drive serves next.
//!
//! First come, first served; or shortest positioning time first, with an age limit so that none starves
//! (Seltzer, Chen, Ousterhout, USENIX 1990; Jacobson and Wilkes, HPL-CSP-91-7).

use std::collections::VecDeque;
use std::ops::Range;

use super::geometry::Place;
use super::mechanics::{Arm, Mechanics};
use super::params::{QueueParams, QueuePolicy};
use crate::driver::RESERVED;
use crate::{Nanos, Request, RequestId};

/// A command that waits for the mechanism.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) id: RequestId,
    pub(crate) request: Request,
    pub(crate) arrived: Nanos,
    /// When the handling of the command would be over, were it served from the buffer.
    pub(crate) early: Nanos,
    /// When the handling of the command is over and the arm may move.
    pub(crate) ready: Nanos,
    pub(crate) place: Place,
    pub(crate) write: bool,
    /// Whether it is a read that continues the read just before it.
    pub(crate) sequential: bool,
}

/// Commands the drive chooses among, followed by those that the drive has not taken yet.
#[derive(Debug)]
pub(crate) struct Queue {
    params: QueueParams,
    /// In order of arrival.
    taken: VecDeque<Waiting>,
    behind: VecDeque<Waiting>,
}

impl Queue {
    pub(crate) fn new(params: QueueParams) -> Self {
        let taken = VecDeque::with_capacity(params.depth as usize);
        Self {
            params,
            taken,
            behind: VecDeque::with_capacity(RESERVED),
        }
    }

    pub(crate) fn push(&mut self, waiting: Waiting) {
        if self.taken.len() < self.params.depth as usize {
            self.taken.push_back(waiting);
        } else {
            self.behind.push_back(waiting);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// Removes the command to serve next, for an arm free at `now`. `read_to` is the end of the read that the
    /// head is on, or reads ahead behind.
    pub(crate) fn pop(
        &mut self,
        now: Nanos,
        arm: Arm,
        read_to: Option<u64>,
        mechanics: &Mechanics,
    ) -> Option<Waiting> {
        let index = self
            .continuing(read_to)
            .unwrap_or_else(|| self.choose(now, arm, mechanics));
        let chosen = self.taken.remove(index)?;
        if let Some(next) = self.behind.pop_front() {
            self.taken.push_back(next);
        }
        Some(chosen)
    }

    /// A read that goes on where the head is, which takes no positioning at all.
    fn continuing(&self, read_to: Option<u64>) -> Option<usize> {
        if self.params.policy == QueuePolicy::Fcfs {
            return None;
        }
        let sector = read_to?;
        let goes_on = |waiting: &Waiting| waiting.request.sector == sector && !waiting.write;
        self.taken.iter().position(goes_on)
    }

    fn choose(&self, now: Nanos, arm: Arm, mechanics: &Mechanics) -> usize {
        let oldest_age = self
            .taken
            .front()
            .map_or(0, |waiting| now.saturating_sub(waiting.arrived));
        if self.params.policy == QueuePolicy::Fcfs
            || oldest_age > self.params.age_limit_ns
            || self.taken.len() < 2
        {
            return 0;
        }
        let places = self
            .taken
            .iter()
            .map(|waiting| (now.max(waiting.ready), &waiting.place, waiting.write));
        mechanics.reached_first(arm, places).unwrap_or(0)
    }
}

// What the mechanism is doing.

/// What the mechanism is doing.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) end: Nanos,
    pub(super) work: Work,
    /// The sectors it moves between medium and buffer.
    pub(super) sectors: Range<u64>,
}

/// For whom the mechanism works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// A command from the queue.
    Command,
    /// The write cache.
    WriteBack,
    /// A flush that nothing else may overtake, with the cache written back.
    Flush(RequestId),
}
