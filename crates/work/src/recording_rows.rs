//! Lookups in a recording's rows: states and calls by thread, block requests by time, roles of files.
//!
//! Facts only. Other modules interpret the rows.

use std::ops::Range;

use tierwise_recording::{
    Block, BlockOp, Call, CallKind, NONE, Recording, Role, State, StateKind, StorageCpu,
    ThreadClass, UNKNOWN,
};

use crate::constants::WOKEN_NS;
use crate::engines::{EngineRules, engine_rules};

/// How the paths of files begin that are the kernel's own: descriptors for signals, timers and events. PostgreSQL reads
/// one whenever a wait for a row ends.
const KERNELS: &str = "anon_inode";
/// A recording is continuous if its bursts cover this share of its time.
const WHOLE: f64 = 0.9;

pub(crate) struct RecordingRows<'a> {
    pub(crate) recording: &'a Recording,
    /// The rules of its engine.
    pub(crate) engine: &'static EngineRules,
    states: Vec<Range<usize>>,
    calls: Vec<Range<usize>>,
    /// Of each device: whether requests to it were recorded.
    seen: Vec<bool>,
}

impl<'a> RecordingRows<'a> {
    pub(crate) fn new(recording: &'a Recording) -> Self {
        let threads = recording.threads.len();
        let mut seen = vec![false; recording.about.devices.len()];
        for block in &recording.blocks {
            if let Some(seen) = seen.get_mut(block.device as usize) {
                *seen = true;
            }
        }
        Self {
            recording,
            engine: engine_rules(&recording.about.engine),
            states: thread_row_ranges(threads, &recording.states, |state| state.thread),
            calls: thread_row_ranges(threads, &recording.calls, |call| call.thread),
            seen,
        }
    }

    pub(crate) fn states(&self, thread: u32) -> &'a [State] {
        &self.recording.states[self.states[thread as usize].clone()]
    }

    pub(crate) fn waits(&self, thread: u32) -> impl Iterator<Item = &'a State> + use<'a> {
        let states = self.states(thread).iter();
        states.filter(|state| state.kind == StateKind::Blocked)
    }

    pub(crate) fn calls(&self, thread: u32) -> &'a [Call] {
        &self.recording.calls[self.calls[thread as usize].clone()]
    }

    /// Index of a thread's first call in the recording.
    pub(crate) fn first_call(&self, thread: u32) -> u32 {
        self.calls[thread as usize].start as u32
    }

    pub(crate) fn call(&self, index: u32) -> Option<&'a Call> {
        self.recording.calls.get(index as usize)
    }

    pub(crate) fn class(&self, thread: u32) -> Option<ThreadClass> {
        let thread = self.recording.threads.get(thread as usize);
        thread.map(|thread| thread.class)
    }

    pub(crate) fn is_engines(&self, thread: u32) -> bool {
        use ThreadClass::{Background, LogWriter, Session};
        matches!(self.class(thread), Some(Session | LogWriter | Background))
    }

    pub(crate) fn role(&self, file: u32) -> Option<Role> {
        self.recording.files.get(file as usize)?.role
    }

    pub(crate) fn device_of(&self, file: u32) -> u32 {
        let file = self.recording.files.get(file as usize);
        file.map_or(NONE, |file| file.device)
    }

    pub(crate) fn sees(&self, device: u32) -> bool {
        self.seen.get(device as usize).copied().unwrap_or(false)
    }

    pub(crate) fn threads(&self, class: ThreadClass) -> impl Iterator<Item = u32> + '_ {
        let threads = (0..).zip(&self.recording.threads);
        threads
            .filter(move |(_, thread)| thread.class == class)
            .map(|(index, _)| index)
    }

    /// Block requests issued from one instant to another.
    pub(crate) fn blocks(&self, from_ns: u64, to_ns: u64) -> &'a [Block] {
        let blocks = &self.recording.blocks;
        let first = blocks.partition_point(|block| block.issued_ns < from_ns);
        let end = blocks.partition_point(|block| block.issued_ns <= to_ns);
        &blocks[first..end.max(first)]
    }

    pub(crate) fn blocks_during(&self, call: &Call) -> &'a [Block] {
        self.blocks(call.start_ns, call.end_ns)
    }

    /// The thread's call under way at an instant, if there is one.
    pub(crate) fn call_at(&self, thread: u32, time_ns: u64) -> Option<&'a Call> {
        let calls = &self.recording.calls[self.calls.get(thread as usize)?.clone()];
        let after = calls.partition_point(|call| call.start_ns <= time_ns);
        let mut before = calls[..after].iter().rev().take(4);
        before.find(|call| call.end_ns >= time_ns && !call.asynchronous)
    }

    /// Whether a call brought bytes from a peer.
    pub(crate) fn received(&self, call: &Call) -> bool {
        call.kind == CallKind::Receive && self.moved_bytes(call)
    }

    /// Whether a call sent bytes to a peer.
    pub(crate) fn sent(&self, call: &Call) -> bool {
        call.kind == CallKind::Send && self.moved_bytes(call)
    }

    fn moved_bytes(&self, call: &Call) -> bool {
        !call.failed && call.size_bytes > 0 && !self.is_kernels(call.file)
    }

    /// Whether a file is a descriptor of the kernel's own, with nobody at its other end.
    pub(crate) fn is_kernels(&self, file: u32) -> bool {
        let file = self.recording.files.get(file as usize);
        file.is_some_and(|file| file.path.starts_with(KERNELS))
    }

    /// Whether a thread exchanged data with its client between two instants.
    pub(crate) fn talked(&self, thread: u32, from_ns: u64, to_ns: u64) -> bool {
        let calls = self.calls(thread);
        let next = calls.partition_point(|call| call.start_ns < from_ns);
        let mut between = calls[next..]
            .iter()
            .take_while(|call| call.start_ns < to_ns);
        between.any(|call| self.received(call) || self.sent(call))
    }

    pub(crate) fn span_ns(&self) -> u64 {
        self.in_bursts_ns(0, u64::MAX)
    }

    /// The part of the bursts between two instants.
    pub(crate) fn in_bursts_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        let bursts = self.recording.about.bursts.iter();
        bursts
            .map(|burst| {
                let end_ns = burst.end_ns.min(to_ns);
                end_ns.saturating_sub(burst.start_ns.max(from_ns))
            })
            .sum()
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.span_ns() as f64 / 1e9 >= WHOLE * self.recording.about.duration_s
    }

    /// A part of the processor time of storage in all bursts; 0 if that of one burst is not known.
    pub(crate) fn storage_cpu_ns(&self, part: impl Fn(StorageCpu) -> u64) -> u64 {
        let mut bursts = self.recording.about.bursts.iter();
        let sum = bursts.try_fold(0_u64, |sum, burst| {
            Some(sum.saturating_add(part(burst.storage_cpu?)))
        });
        sum.unwrap_or(0)
    }

    pub(crate) fn cpu_ns(&self, thread: u32) -> u64 {
        running_ns(self.states(thread))
    }

    /// The same between two instants.
    pub(crate) fn on_core_ns(&self, thread: u32, from_ns: u64, to_ns: u64) -> u64 {
        let states = self.states(thread);
        let first = states.partition_point(|state| state.end_ns <= from_ns);
        states[first..]
            .iter()
            .take_while(|state| state.start_ns < to_ns)
            .filter(|state| state.kind == StateKind::Cpu)
            .map(|state| state.end_ns.min(to_ns) - state.start_ns.max(from_ns))
            .sum()
    }

    /// Block requests that the caller itself submitted within a call.
    pub(crate) fn own_blocks(&self, call: &Call, op: BlockOp) -> Vec<&'a Block> {
        if call.kind == CallKind::Await {
            return Vec::new();
        }
        let blocks = self.blocks_during(call).iter();
        blocks
            .filter(|block| block.op == op && block.thread == call.thread)
            .collect()
    }

    pub(crate) fn fault_reads(&self, wait: &State) -> Vec<&'a Block> {
        let from_ns = wait.start_ns.saturating_sub(WOKEN_NS.get());
        let sent = self.blocks(from_ns, wait.end_ns).iter();
        sent.filter(|block| block.op == BlockOp::Read && block.thread == wait.thread)
            .filter(|block| block.completed_ns > wait.start_ns)
            .collect()
    }

    /// Whether a write bypassed the page cache: the caller itself sent it to the device.
    pub(crate) fn is_direct(&self, call: &Call) -> bool {
        let own = self.own_blocks(call, BlockOp::Write);
        own.iter().any(|block| block.file == call.file)
    }
}

pub(crate) fn running_ns(states: &[State]) -> u64 {
    let on_core = states.iter().filter(|state| state.kind == StateKind::Cpu);
    on_core.map(|state| state.end_ns - state.start_ns).sum()
}

/// Whether a call waits until data is durable; `sync_file_range`, which has a range, does not.
pub(crate) fn makes_durable(call: &Call) -> bool {
    call.kind == CallKind::Sync && (call.offset_bytes == UNKNOWN || call.size_bytes == 0)
}

/// The median, the upper one for an even number of values; none if there are no values.
pub(crate) fn median(mut times_ns: Vec<u64>) -> Option<u64> {
    times_ns.sort_unstable();
    times_ns.get(times_ns.len() / 2).copied()
}

/// Range of each thread's rows in a table sorted by thread.
fn thread_row_ranges<T>(
    threads: usize,
    rows: &[T],
    thread: impl Fn(&T) -> u32,
) -> Vec<Range<usize>> {
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

/// A state of a thread for tests: on the first core, woken by nobody; between two instants in microseconds.
#[cfg(test)]
pub(crate) const fn test_state(thread: u32, us: (u64, u64), kind: StateKind) -> State {
    State {
        thread,
        start_ns: us.0 * 1000,
        end_ns: us.1 * 1000,
        kind,
        cpu: 0,
        waker: NONE,
        call: NONE,
    }
}

#[cfg(test)]
mod tests {
    use tierwise_recording::File;

    use super::*;

    #[test]
    fn a_read_of_a_signalfd_is_no_request() {
        let named = |path: &str| File {
            path: path.to_owned(),
            role: None,
            device: NONE,
            size_bytes: 0,
        };
        let recording = Recording {
            files: vec![named("socket:[7]"), named("anon_inode:[signalfd]")],
            ..Recording::default()
        };
        let rows = RecordingRows::new(&recording);
        let received = [0, 1, NONE].map(|file| {
            rows.received(&Call {
                thread: 0,
                start_ns: 0,
                end_ns: 1,
                kind: CallKind::Receive,
                file,
                offset_bytes: 0,
                size_bytes: 128,
                asynchronous: false,
                failed: false,
                transaction_status: None,
            })
        });
        assert_eq!(received, [true, false, true]);
    }
}
