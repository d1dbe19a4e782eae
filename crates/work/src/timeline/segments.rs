//! One thread's time in one burst as segments in order: on a core, ready, waiting, and the calls between them.

use tierwise_recording::{Call, State, StateKind};

use crate::index::rows::Rows;
use crate::log::flushes::LogFlushes;
use crate::timeline::wait::{WaitCause, wait_cause};

/// The kind of a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SegmentKind {
    /// On a core; whether off any core just before.
    Cpu { waited: bool },
    /// Runnable.
    Ready,
    /// Waits: the cause, and the index of the state among the thread's.
    Wait { cause: WaitCause, state: u32 },
    /// A call begins here: its index.
    Call { call: u32 },
}

/// A segment; a call's is empty, its time is in the segments that follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Segment {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) kind: SegmentKind,
}

impl Segment {
    pub(crate) fn time_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}

/// The segments of a thread in each burst, with the burst's number.
pub(crate) fn segments_of(
    rows: &Rows<'_>,
    flushes: &LogFlushes,
    thread: u32,
) -> Vec<(u32, Vec<Segment>)> {
    let states = rows.states(thread);
    let (first_call, calls) = rows.calls(thread);
    let bursts = rows.recording.about.bursts.iter().enumerate();
    bursts
        .filter_map(|(number, burst)| {
            let inside = |state: &State| state.start_ns < burst.end_ns;
            let from = states.partition_point(|state| state.end_ns <= burst.start_ns);
            let to = from + states[from..].partition_point(inside);
            if from == to {
                return None;
            }
            let first = calls.partition_point(|call| call.start_ns < burst.start_ns);
            let last = calls.partition_point(|call| call.start_ns < burst.end_ns);
            let mut builder = SegmentBuilder::new(first_call, calls, first, last.max(first));
            for (index, state) in states[from..to].iter().enumerate() {
                let cause = || wait_cause(rows, flushes, state);
                builder.take((from + index) as u32, state, cause);
            }
            builder.calls_until(u64::MAX);
            Some((number as u32, builder.segments))
        })
        .collect()
}

/// Pieces of segments; those on a core are split at any of the given instants, which are sorted.
pub(crate) fn split_at(segments: Vec<Segment>, instants: &[u64]) -> Vec<Segment> {
    let mut cut = Vec::with_capacity(segments.len() + instants.len());
    let mut instants = instants.iter().copied().peekable();
    for mut rest in segments {
        while instants.next_if(|&at_ns| at_ns <= rest.start_ns).is_some() {}
        while let Some(at_ns) = instants.next_if(|&at_ns| at_ns < rest.end_ns) {
            let SegmentKind::Cpu { .. } = rest.kind else {
                continue;
            };
            if at_ns > rest.start_ns {
                cut.push(Segment {
                    end_ns: at_ns,
                    ..rest
                });
                rest.kind = SegmentKind::Cpu { waited: false };
                rest.start_ns = at_ns;
            }
        }
        cut.push(rest);
    }
    cut
}

/// Merges states and calls by time.
struct SegmentBuilder<'a> {
    first_call: u32,
    calls: &'a [Call],
    next: usize,
    end: usize,
    was_off_core: bool,
    segments: Vec<Segment>,
}

impl<'a> SegmentBuilder<'a> {
    fn new(first_call: u32, calls: &'a [Call], next: usize, end: usize) -> Self {
        Self {
            first_call,
            calls,
            next,
            end,
            was_off_core: false,
            segments: Vec::new(),
        }
    }

    fn take(&mut self, index: u32, state: &State, cause: impl FnOnce() -> WaitCause) {
        match state.kind {
            StateKind::Cpu => self.run(state),
            StateKind::Runnable => {
                self.was_off_core = true;
                self.push(state.start_ns, state.end_ns, SegmentKind::Ready);
            }
            StateKind::Blocked => {
                self.calls_until(state.start_ns);
                self.was_off_core = true;
                let kind = SegmentKind::Wait {
                    cause: cause(),
                    state: index,
                };
                self.push(state.start_ns, state.end_ns, kind);
            }
        }
    }

    fn run(&mut self, state: &State) {
        let mut from_ns = state.start_ns;
        while self.next < self.end && self.calls[self.next].start_ns < state.end_ns {
            let call_ns = self.calls[self.next].start_ns.max(from_ns);
            self.core(from_ns, call_ns);
            from_ns = call_ns;
            self.call(call_ns);
        }
        self.core(from_ns, state.end_ns);
    }

    /// Adds time on a core.
    fn core(&mut self, from_ns: u64, to_ns: u64) {
        if to_ns > from_ns {
            let waited = std::mem::take(&mut self.was_off_core);
            self.push(from_ns, to_ns, SegmentKind::Cpu { waited });
        }
    }

    fn calls_until(&mut self, time_ns: u64) {
        while self.next < self.end && self.calls[self.next].start_ns <= time_ns {
            let call_ns = self.calls[self.next].start_ns;
            self.call(call_ns);
        }
    }

    fn call(&mut self, time_ns: u64) {
        let call = self.first_call + self.next as u32;
        self.push(time_ns, time_ns, SegmentKind::Call { call });
        self.next += 1;
    }

    fn push(&mut self, start_ns: u64, end_ns: u64, kind: SegmentKind) {
        self.segments.push(Segment {
            start_ns,
            end_ns,
            kind,
        });
    }
}
