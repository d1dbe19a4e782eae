//! A recording with the indexes that extraction needs: rows by thread, roles, bursts, block requests by time.

use std::ops::Range;

use tierwise_recording::{
    Block, Call, CallKind, NONE, Recording, Role, State, StateKind, ThreadClass, UNKNOWN,
};

use crate::WakeRules;
use crate::devices::has_blocks;
use crate::misses::Misses;
use crate::space::Space;
use crate::streams::Streams;
use crate::switches::Settled;

/// A recording, indexed.
pub(crate) struct View<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) space: Space,
    /// Nothing until it was worked out.
    pub(crate) misses: Misses,
    settled: &'a Settled,
    states: Vec<Range<usize>>,
    calls: Vec<Range<usize>>,
    pub(crate) streams: Streams,
    /// Of each device: whether requests to it were recorded.
    seen: Vec<bool>,
}

/// A recording is whole if its bursts are so much of its time.
const WHOLE: f64 = 0.9;

/// What an event costs the thread that it happens to, in what it costs in a loop of cheap calls, where it was
/// measured: there the tracer's code and buffer stay in the first caches. By the rates of PostgreSQL with and
/// without recording on a quiet machine (order entry, 1 to 32 clients): 2.1 to 3.
const EVENT_FACTOR: f64 = 2.5;
/// More than an event was ever seen to cost in that loop.
const MOST_EVENT_NS: f64 = 2_000.0;

impl<'a> View<'a> {
    pub(crate) fn new(recording: &'a Recording, settled: &'a Settled) -> Self {
        let threads = recording.threads.len();
        let mut view = Self {
            recording,
            space: Space::default(),
            misses: Misses::default(),
            settled,
            states: ranges(threads, &settled.states, |state| state.thread),
            calls: ranges(threads, &recording.calls, |call| call.thread),
            streams: Streams::default(),
            seen: Vec::new(),
        };
        view.seen = has_blocks(&view);
        view.space = Space::new(&view);
        view.streams = Streams::new(&view);
        view
    }

    pub(crate) fn states(&self, thread: u32) -> &'a [State] {
        &self.settled.states[self.states[thread as usize].clone()]
    }

    /// The states of all threads.
    pub(crate) fn all_states(&self) -> &'a [State] {
        &self.settled.states
    }

    /// Where threads run that wake.
    pub(crate) fn wakes(&self) -> WakeRules {
        self.settled.wakes.clone()
    }

    /// Processor time that one recorded event took.
    pub(crate) fn event_ns(&self) -> f64 {
        let cost = self.recording.about.cost.as_ref();
        cost.map_or(0.0, |cost| {
            EVENT_FACTOR * cost.event_cpu_ns.clamp(0.0, MOST_EVENT_NS)
        })
    }

    /// Index of the first call of a thread, and its calls.
    pub(crate) fn calls(&self, thread: u32) -> (u32, &'a [Call]) {
        let range = self.calls[thread as usize].clone();
        (range.start as u32, &self.recording.calls[range])
    }

    pub(crate) fn call(&self, index: u32) -> Option<&'a Call> {
        self.recording.calls.get(index as usize)
    }

    pub(crate) fn class(&self, thread: u32) -> Option<ThreadClass> {
        self.recording
            .threads
            .get(thread as usize)
            .map(|thread| thread.class)
    }

    pub(crate) fn role(&self, file: u32) -> Option<Role> {
        self.recording.files.get(file as usize)?.role
    }

    pub(crate) fn device_of(&self, file: u32) -> u32 {
        self.recording
            .files
            .get(file as usize)
            .map_or(NONE, |file| file.device)
    }

    /// Whether requests to a device were recorded.
    pub(crate) fn sees(&self, device: u32) -> bool {
        self.seen.get(device as usize).copied().unwrap_or(false)
    }

    /// Threads of a class, by index.
    pub(crate) fn threads(&self, class: ThreadClass) -> impl Iterator<Item = u32> + '_ {
        let threads = self.recording.threads.iter().enumerate();
        threads
            .filter(move |(_, thread)| thread.class == class)
            .map(|(index, _)| index as u32)
    }

    /// Block requests issued from one instant to another.
    pub(crate) fn blocks(&self, from_ns: u64, to_ns: u64) -> &'a [Block] {
        let blocks = &self.recording.blocks;
        let first = blocks.partition_point(|block| block.issued_ns < from_ns);
        let end = blocks.partition_point(|block| block.issued_ns <= to_ns);
        &blocks[first..end.max(first)]
    }

    /// The call of a thread that was under way at an instant, if one was.
    pub(crate) fn call_at(&self, thread: u32, time_ns: u64) -> Option<&'a Call> {
        if thread as usize >= self.calls.len() {
            return None;
        }
        let (_, calls) = self.calls(thread);
        let after = calls.partition_point(|call| call.start_ns <= time_ns);
        let mut before = calls[..after].iter().rev().take(4);
        before.find(|call| call.end_ns >= time_ns && !call.asynchronous)
    }

    /// Sum of all bursts.
    pub(crate) fn span_ns(&self) -> u64 {
        let bursts = &self.recording.about.bursts;
        bursts.iter().map(|b| b.end_ns - b.start_ns).sum()
    }

    /// Whether next to all of the time was recorded.
    pub(crate) fn is_whole(&self) -> bool {
        self.span_ns() as f64 / 1e9 >= WHOLE * self.recording.about.duration_s
    }

    /// Time that a thread spent on a core.
    pub(crate) fn cpu_ns(&self, thread: u32) -> u64 {
        let states = self.states(thread).iter();
        states
            .filter(|state| state.kind == StateKind::Cpu)
            .map(|state| state.end_ns - state.start_ns)
            .sum()
    }
}

/// Whether a call waits until data is durable, as opposed to `sync_file_range`, which has a range.
pub(crate) fn makes_durable(call: &Call) -> bool {
    call.kind == CallKind::Sync && (call.offset_bytes == UNKNOWN || call.size_bytes == 0)
}

/// Where the rows of each thread lie in a table sorted by thread.
fn ranges<T>(threads: usize, rows: &[T], thread: impl Fn(&T) -> u32) -> Vec<Range<usize>> {
    let mut first = 0;
    (0..threads as u32)
        .map(|index| {
            let start = first + rows[first..].partition_point(|row| thread(row) < index);
            let end = start + rows[start..].partition_point(|row| thread(row) == index);
            first = end;
            start..end
        })
        .collect()
}
