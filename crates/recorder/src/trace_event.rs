//! One decoded kernel event; the tracer hands it to the timeline.

use tierwise_recording::{BlockOp, TransactionStatus};

/// One event. Events come in order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceEvent {
    /// Monotonic clock.
    pub time_ns: u64,
    /// Core it happened on.
    pub cpu: u16,
    /// Thread that ran there.
    pub tid: i32,
    pub kind: TraceEventKind,
}

/// How a thread left its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchedOutState {
    /// Preempted or yielded: it can still run.
    Runnable,
    /// Sleeps, and a signal may wake it.
    Sleeping,
    /// Sleeps for a device.
    Disk,
    /// Ended.
    Dead,
    /// Stopped or traced.
    Stopped,
}

/// A request to a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRequest {
    /// `(major << 20) | minor`
    pub device: u32,
    pub sector: u64,
    pub sectors: u32,
    pub op: BlockOp,
    /// A flush comes before it.
    pub preflush: bool,
    /// It is complete on the medium.
    pub fua: bool,
    pub sync: bool,
    pub meta: bool,
    /// A thread of a process issued it, none of the kernel's own.
    pub by_process: bool,
    /// The thread of an ext4 journal issued it.
    pub by_journal: bool,
}

#[cfg(test)]
impl BlockRequest {
    /// With the kernel's letters: F if a flush comes first; the operation, R W D or F; then F for forced unit access, S for
    /// sync, M for metadata; P if a process issued it, J if the thread of a
    /// journal did.
    pub fn of(device: u32, sector: u64, sectors: u32, letters: &str) -> Self {
        let (first, rest) = letters.split_at(1);
        let (preflush, op, after) = match rest.chars().next() {
            Some('W' | 'F') if first == "F" => (true, &rest[..1], &rest[1..]),
            _ => (false, first, rest),
        };
        Self {
            device,
            sector,
            sectors,
            op: match op {
                "R" => BlockOp::Read,
                "W" => BlockOp::Write,
                "D" => BlockOp::Discard,
                _ => BlockOp::Flush,
            },
            preflush,
            fua: after.contains('F'),
            sync: after.contains('S'),
            meta: after.contains('M'),
            by_process: after.contains('P'),
            by_journal: after.contains('J'),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum TraceEventKind {
    /// A burst begins: every thread known is in some state; nothing before it is known.
    BurstStart,
    BurstEnd,
    /// System call entered, by its number on this machine, with its first arguments.
    Enter {
        number: u32,
        arguments: [u64; 4],
    },
    Exit {
        number: u32,
        result: i64,
    },
    /// The core goes from one thread to another, of which 0 is the idle one; `tid` of the event is `previous`.
    Switch {
        previous: i32,
        state: SwitchedOutState,
        next: i32,
    },
    /// A thread can run again; `tid` of the event is the waker (0 or a foreign one in an interrupt).
    Waking {
        woken: i32,
        /// Core it will run on.
        target: u16,
        /// Whether an interrupt, not the current thread itself, woke it.
        interrupt: bool,
    },
    Fork {
        child: i32,
        name: String,
        /// Whether it belongs to the same process.
        thread: bool,
    },
    Rename {
        name: String,
    },
    Ended,
    /// A file was opened, or one was removed (number -1) by its absolute path; sent before the exit of its call.
    Opened {
        fd: i32,
        path: String,
    },
    /// The data that a call sends; recorded before the call's exit.
    Replied {
        /// When the call began, monotonic clock.
        begun_ns: u64,
        status: TransactionStatus,
    },
    /// A request was given to its device.
    Issue(BlockRequest),
    /// A request completed.
    Complete(BlockRequest),
    /// A request was handed to an io_uring, with the kernel's number of it, and its operation `IORING_OP_…`.
    UringSubmit {
        request: u64,
        operation: u8,
    },
    /// A request of an io_uring completed.
    UringComplete {
        request: u64,
        result: i64,
    },
}
