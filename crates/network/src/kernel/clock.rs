//! Virtual time: pending events in order, and tasks that can continue now.
//!
//! Events of the same time keep the order in which they were added, so that a seed determines a run.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use tierwise_device::Nanos;

/// A task: a session of the recording, or a service of its machine. An index among the run's tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskId(pub(crate) u32);

/// A core: an index among the scenario's cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CoreId(pub(crate) u32);

/// A request to a device: an index among the requests under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestId(pub(crate) u32);

/// What happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimulationEvent {
    /// The burst or slice of this core ends.
    Core(CoreId),
    /// This task continues.
    Wake(TaskId),
    /// This request has passed the path to its device.
    Arrival(RequestId),
}

/// Bits of an event's index; those above hold its kind and the order in which it was added.
const INDEX_BITS: u32 = 24;
const KIND_BITS: u32 = 2;

impl SimulationEvent {
    fn encode(self) -> u64 {
        let (kind, index) = match self {
            Self::Core(core) => (0, core.0),
            Self::Wake(task) => (1, task.0),
            Self::Arrival(request) => (2, request.0),
        };
        debug_assert!(index < 1 << INDEX_BITS);
        (kind << INDEX_BITS) | u64::from(index)
    }

    fn decode(word: u64) -> Self {
        let index = (word & ((1 << INDEX_BITS) - 1)) as u32;
        match (word >> INDEX_BITS) & ((1 << KIND_BITS) - 1) {
            0 => Self::Core(CoreId(index)),
            1 => Self::Wake(TaskId(index)),
            _ => Self::Arrival(RequestId(index)),
        }
    }
}

/// Virtual time.
#[derive(Debug)]
pub(crate) struct VirtualClock {
    now: Nanos,
    /// Time, order of adding and event in one number, so that one comparison orders them.
    events: BinaryHeap<Reverse<u128>>,
    added: u64,
    ready: VecDeque<TaskId>,
}

impl VirtualClock {
    pub(crate) fn new() -> Self {
        Self {
            now: 0,
            events: BinaryHeap::with_capacity(1024),
            added: 0,
            ready: VecDeque::with_capacity(64),
        }
    }

    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    /// Lets time pass until `at`.
    pub(crate) fn pass(&mut self, at: Nanos) {
        self.now = self.now.max(at);
    }

    /// Adds an event.
    pub(crate) fn add(&mut self, at: Nanos, event: SimulationEvent) {
        let word = (self.added << (INDEX_BITS + KIND_BITS)) | event.encode();
        self.events
            .push(Reverse(u128::from(at) << u64::BITS | u128::from(word)));
        self.added += 1;
    }

    /// Lets a task continue now, after those that can already.
    pub(crate) fn wake(&mut self, task: TaskId) {
        self.ready.push_back(task);
    }

    /// Lets a task continue after a delay.
    pub(crate) fn wake_after(&mut self, delay_ns: Nanos, task: TaskId) {
        match delay_ns {
            0 => self.wake(task),
            _ => self.add(self.now + delay_ns, SimulationEvent::Wake(task)),
        }
    }

    /// The next task that can continue now.
    pub(crate) fn next_ready(&mut self) -> Option<TaskId> {
        self.ready.pop_front()
    }

    /// Whether a task can continue now.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Time of the next event: now, if a task can continue.
    pub(crate) fn next(&self) -> Nanos {
        let first = self.events.peek();
        match self.ready.is_empty() {
            true => first.map_or(Nanos::MAX, |event| (event.0 >> u64::BITS) as Nanos),
            false => self.now,
        }
    }

    /// The next event; time passes until then.
    pub(crate) fn next_event(&mut self) -> Option<SimulationEvent> {
        let Reverse(first) = self.events.pop()?;
        self.pass((first >> u64::BITS) as Nanos);
        Some(SimulationEvent::decode(first as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_comes_first_and_then_the_order_of_adding() {
        let mut clock = VirtualClock::new();
        clock.add(5, SimulationEvent::Core(CoreId(3)));
        clock.add(5, SimulationEvent::Wake(TaskId(1)));
        clock.add(2, SimulationEvent::Arrival(RequestId(7)));
        let order: Vec<_> = std::iter::from_fn(|| clock.next_event()).collect();
        let expected = [
            SimulationEvent::Arrival(RequestId(7)),
            SimulationEvent::Core(CoreId(3)),
            SimulationEvent::Wake(TaskId(1)),
        ];
        assert_eq!(order, expected);
        assert_eq!(clock.now(), 5);
    }
}
