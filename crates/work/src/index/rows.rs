//! The indexed rows of a recording: states and calls by thread, block requests by time, roles of files.

use std::ops::Range;

use tierwise_recording::{
    Block, BlockOp, Call, CallKind, NONE, Recording, Role, State, StateKind, StorageCpu,
    ThreadClass,
};

use crate::constants::FAULT_NS;
use crate::engines::{EngineRules, rules_of};

/// A recording with indexed rows.
pub(crate) struct Rows<'a> {
    pub(crate) recording: &'a Recording,
    /// The rules of its engine.
    pub(crate) engine: &'static EngineRules,
    states: Vec<Range<usize>>,
    calls: Vec<Range<usize>>,
    /// Of each device: whether requests to it were recorded.
    seen: Vec<bool>,
    /// Of each file: whether it is the kernel's own, as a signalfd is, with nobody at its other end.
    kernels: Vec<bool>,
}

/// How the paths of files begin that are the kernel's own: descriptors for signals, timers and events. PostgreSQL reads
/// one whenever a wait for a row ends.
const KERNELS: &str = "anon_inode";
/// A recording is continuous if its bursts cover this share of its time.
const WHOLE: f64 = 0.9;

impl<'a> Rows<'a> {
    pub(crate) fn new(recording: &'a Recording) -> Self {
        let threads = recording.threads.len();
        Self {
            recording,
            engine: rules_of(&recording.about.engine),
            states: ranges(threads, &recording.states, |state| state.thread),
            calls: ranges(threads, &recording.calls, |call| call.thread),
            seen: devices_seen(recording),
            kernels: recording
                .files
                .iter()
                .map(|file| file.path.starts_with(KERNELS))
                .collect(),
        }
    }

    pub(crate) fn states(&self, thread: u32) -> &'a [State] {
        &self.recording.states[self.states[thread as usize].clone()]
    }

    /// The states of all threads.
    pub(crate) fn all_states(&self) -> &'a [State] {
        &self.recording.states
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

    /// The thread's call under way at an instant, if there is one.
    pub(crate) fn call_at(&self, thread: u32, time_ns: u64) -> Option<&'a Call> {
        if thread as usize >= self.calls.len() {
            return None;
        }
        let (_, calls) = self.calls(thread);
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

    /// Whether a file is a descriptor of the kernel's own.
    pub(crate) fn is_kernels(&self, file: u32) -> bool {
        self.kernels.get(file as usize).copied().unwrap_or(false)
    }

    /// Whether a thread exchanged data with its client between two instants.
    pub(crate) fn talked(&self, thread: u32, from_ns: u64, to_ns: u64) -> bool {
        let (_, calls) = self.calls(thread);
        let next = calls.partition_point(|call| call.start_ns < from_ns);
        calls[next..]
            .iter()
            .take_while(|call| call.start_ns < to_ns)
            .any(|call| self.received(call) || self.sent(call))
    }

    /// Sum of all bursts.
    pub(crate) fn span_ns(&self) -> u64 {
        let bursts = &self.recording.about.bursts;
        bursts.iter().map(|b| b.end_ns - b.start_ns).sum()
    }

    /// Whether nearly all of the time was recorded.
    pub(crate) fn is_whole(&self) -> bool {
        self.span_ns() as f64 / 1e9 >= WHOLE * self.recording.about.duration_s
    }

    /// Processor time of storage in all bursts: of the kernel's threads for block devices and file systems, and of the
    /// servers of emulated disks. None if that of one burst is not known.
    pub(crate) fn storage_cpu(&self) -> Option<StorageCpu> {
        let none = StorageCpu {
            server_ns: 0,
            kernel_ns: 0,
        };
        let mut bursts = self.recording.about.bursts.iter();
        bursts.try_fold(none, |sum, burst| {
            let one = burst.storage_cpu?;
            Some(StorageCpu {
                server_ns: sum.server_ns.saturating_add(one.server_ns),
                kernel_ns: sum.kernel_ns.saturating_add(one.kernel_ns),
            })
        })
    }

    /// Time that a thread spent on a core.
    pub(crate) fn cpu_ns(&self, thread: u32) -> u64 {
        let states = self.states(thread).iter();
        states
            .filter(|state| state.kind == StateKind::Cpu)
            .map(|state| state.end_ns - state.start_ns)
            .sum()
    }

    /// Time that a thread spent on a core between two instants.
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
        let blocks = self.blocks(call.start_ns, call.end_ns).iter();
        blocks
            .filter(|b| b.op == op && b.thread == call.thread)
            .collect()
    }

    /// Device reads of a page fault, if a thread waited outside of any call.
    pub(crate) fn fault_reads(&self, wait: &State) -> Vec<&'a Block> {
        let from_ns = wait.start_ns.saturating_sub(FAULT_NS.get());
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

/// Range of each thread's rows in a table sorted by thread.
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

/// Of each device: whether any request to it was recorded.
fn devices_seen(recording: &Recording) -> Vec<bool> {
    let mut seen = vec![false; recording.about.devices.len()];
    for block in &recording.blocks {
        if block.device != NONE
            && let Some(seen) = seen.get_mut(block.device as usize)
        {
            *seen = true;
        }
    }
    seen
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
        let rows = Rows::new(&recording);
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
