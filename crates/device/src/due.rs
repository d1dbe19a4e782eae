//! Requests whose completion time is known, waiting for time to reach it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{Completion, Nanos, RequestId};

/// Room that every model reserves at the start, so that no request allocates until more are outstanding.
pub(crate) const RESERVED: usize = 1024;

/// Completions ordered by time; those due at the same time leave in the order they were added.
#[derive(Debug)]
pub(crate) struct DueList {
    heap: BinaryHeap<Reverse<(Nanos, u64, RequestId)>>,
    added: u64,
}

impl DueList {
    pub(crate) fn new() -> Self {
        Self {
            heap: BinaryHeap::with_capacity(RESERVED),
            added: 0,
        }
    }

    pub(crate) fn push(&mut self, at: Nanos, id: RequestId) {
        self.heap.push(Reverse((at, self.added, id)));
        self.added += 1;
    }

    pub(crate) fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    /// Moves everything due at or before `now` to `completions`.
    pub(crate) fn drain(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        while self.next().is_some_and(|at| at <= now) {
            self.pop(completions);
        }
    }

    /// Moves the earliest to `completions`.
    pub(crate) fn pop(&mut self, completions: &mut Vec<Completion>) {
        if let Some(Reverse((at, _, id))) = self.heap.pop() {
            completions.push(Completion { id, at });
        }
    }
}
