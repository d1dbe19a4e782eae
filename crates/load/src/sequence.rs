//! Numbers in order.

use crate::context::Context;

/// A sequence ready to draw.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    first: i64,
    next: i64,
    /// The next number when the transaction began.
    marked: i64,
    step: i64,
    restarts: bool,
}

impl Sequence {
    /// Begins at `start`, or after `used` if that is greater. With n clients, each draws every n-th number of
    /// a `global` sequence. A sequence of a client's own without a query begins anew in each lap.
    pub fn new(start: i64, global: bool, asks: bool, context: Context, used: Option<i64>) -> Self {
        let start = used.map_or(start, |used| start.max(used + 1));
        let (offset, step) = if global {
            (context.client as i64, context.clients as i64)
        } else {
            (0, 1)
        };
        Self {
            first: start + offset,
            next: start + offset,
            marked: start + offset,
            step,
            restarts: !asks && !global,
        }
    }

    pub fn draw(&mut self) -> i64 {
        let drawn = self.next;
        self.next += self.step;
        drawn
    }

    /// Begin anew, unless the sequence goes on.
    pub fn restart(&mut self) {
        if self.restarts {
            self.next = self.first;
        }
    }

    /// Remember where a transaction began.
    pub fn mark(&mut self) {
        self.marked = self.next;
    }

    /// Go back to where the transaction began, so that sequences that number objects have no gaps.
    pub fn rewind(&mut self) {
        if self.restarts {
            self.next = self.marked;
        }
    }
}
