//! Pending events by time; events at the same time keep the order in which they were added.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tierwise_device::Nanos;

/// Bits of an event's index; the upper bits hold its kind and the order in which it was added.
const INDEX_BITS: u32 = 24;
const KIND_BITS: u32 = 4;

/// An event; the number is an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A burst or a slice on this core ends.
    Core(u32),
    /// This session continues.
    Wake(u32),
    /// A turn of this paced session begins.
    Begin(u32),
    /// This request has passed the path to its device.
    PathDone(u32),
    /// The engine's log flusher wakes.
    Flusher,
    /// The kernel's periodic write-back.
    WriteBack,
    /// The warm-up ends.
    Count,
    /// The run ends.
    End,
    /// A transaction arrives.
    Arrival,
}

impl Event {
    fn encode(self) -> u64 {
        let (kind, index) = match self {
            Self::Core(index) => (0, index),
            Self::Wake(index) => (1, index),
            Self::Begin(index) => (2, index),
            Self::PathDone(index) => (3, index),
            Self::Flusher => (4, 0),
            Self::WriteBack => (5, 0),
            Self::Count => (6, 0),
            Self::End => (7, 0),
            Self::Arrival => (8, 0),
        };
        debug_assert!(index < 1 << INDEX_BITS);
        (kind << INDEX_BITS) | u64::from(index)
    }

    fn decode(word: u64) -> Self {
        let index = (word & ((1 << INDEX_BITS) - 1)) as u32;
        match (word >> INDEX_BITS) & ((1 << KIND_BITS) - 1) {
            0 => Self::Core(index),
            1 => Self::Wake(index),
            2 => Self::Begin(index),
            3 => Self::PathDone(index),
            4 => Self::Flusher,
            5 => Self::WriteBack,
            6 => Self::Count,
            8 => Self::Arrival,
            _ => Self::End,
        }
    }
}

/// The event queue.
#[derive(Debug)]
pub(crate) struct Events {
    /// Time and encoded event in one number, so that one comparison orders them.
    heap: BinaryHeap<Reverse<u128>>,
    added: u64,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self {
            heap: BinaryHeap::with_capacity(1024),
            added: 0,
        }
    }

    pub(crate) fn push(&mut self, at: Nanos, event: Event) {
        let word = (self.added << (INDEX_BITS + KIND_BITS)) | event.encode();
        let key = u128::from(at) << u64::BITS | u128::from(word);
        self.heap.push(Reverse(key));
        self.added += 1;
    }

    pub(crate) fn next(&self) -> Nanos {
        let first = self.heap.peek();
        first.map_or(Nanos::MAX, |event| (event.0 >> u64::BITS) as Nanos)
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        let first = self.heap.pop();
        first.map(|event| Event::decode(event.0 as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_comes_first_and_then_the_order_of_adding() {
        let mut events = Events::new();
        events.push(5, Event::Core(3));
        events.push(5, Event::Wake(1));
        events.push(2, Event::PathDone((1 << INDEX_BITS) - 1));
        let order: Vec<_> = std::iter::from_fn(|| events.pop()).collect();
        let last_index = Event::PathDone((1 << INDEX_BITS) - 1);
        assert_eq!(order, [last_index, Event::Core(3), Event::Wake(1)]);
    }
}
