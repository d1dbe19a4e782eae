//! Requests that a volume works on at the same time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Nanos;

/// A fixed number of slots, each held by a request until it completes.
#[derive(Debug)]
pub(super) struct Slots {
    depth: usize,
    /// When each slot in use becomes free, earliest first.
    free_at: BinaryHeap<Reverse<Nanos>>,
}

impl Slots {
    pub(super) fn new(depth: u32) -> Self {
        Self {
            depth: depth as usize,
            free_at: BinaryHeap::with_capacity(depth as usize),
        }
    }

    /// When the next slot is free; 0 if one never was used.
    pub(super) fn ready_at(&self) -> Nanos {
        match self.free_at.peek() {
            Some(Reverse(free_at)) if self.free_at.len() == self.depth => *free_at,
            _ => 0,
        }
    }

    /// Holds the slot that is free first until `until`.
    pub(super) fn hold(&mut self, until: Nanos) {
        if self.free_at.len() < self.depth {
            self.free_at.push(Reverse(until));
        } else if let Some(mut earliest) = self.free_at.peek_mut() {
            *earliest = Reverse(until);
        }
    }
}
