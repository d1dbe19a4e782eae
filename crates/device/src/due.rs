//! Events at known future times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{Completion, Nanos, RequestId};

/// Capacity that every model reserves at the start, so that no request allocates until more are outstanding.
pub(crate) const RESERVED: usize = 1024;

/// Events ordered by time, by default completions; those due at the same time leave in the order they were added.
#[derive(Debug)]
pub(crate) struct DueList<T = RequestId> {
    heap: BinaryHeap<Reverse<(Nanos, u64, T)>>,
    added: u64,
}

impl<T: Ord> DueList<T> {
    pub(crate) fn new() -> Self {
        Self {
            heap: BinaryHeap::with_capacity(RESERVED),
            added: 0,
        }
    }

    pub(crate) fn push(&mut self, at: Nanos, event: T) {
        self.heap.push(Reverse((at, self.added, event)));
        self.added += 1;
    }

    pub(crate) fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    /// Removes the earliest.
    pub(crate) fn take(&mut self) -> Option<T> {
        self.heap.pop().map(|Reverse((_, _, event))| event)
    }
}

impl DueList {
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
