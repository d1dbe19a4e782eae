//! One decoded kernel event; the tracer hands it to the timeline.

use tierwise_recording::TransactionStatus;

/// One event. Events come in order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Monotonic clock.
    pub time_ns: u64,
    /// Core it happened on.
    pub cpu: u16,
    /// Thread that ran there.
    pub tid: i32,
    /// What happened.
    pub kind: EventKind,
}

/// How a thread left its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchState {
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

/// A file that got a number, reported at the open itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Number in the process.
    pub fd: i32,
    /// Path, absolute.
    pub path: String,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// A burst begins: every thread known is in some state; nothing before it is known.
    BurstStart,
    /// A burst ends.
    BurstEnd,
    /// System call entered, by its number on this machine.
    Enter {
        /// Number.
        number: u32,
        /// Its arguments; those not told are 0.
        arguments: [u64; 6],
    },
    /// System call left.
    Exit {
        /// Number.
        number: u32,
        /// Its result.
        result: i64,
    },
    /// The core goes from one thread to another; `tid` of the event is `previous`.
    Switch {
        /// Thread that leaves; 0 is the idle one.
        previous: i32,
        /// How it leaves.
        state: SwitchState,
        /// Thread that comes; 0 is the idle one.
        next: i32,
    },
    /// A thread can run again; `tid` of the event is the waker (0 or a foreign one in an interrupt).
    Waking {
        /// Thread that is woken.
        woken: i32,
        /// Core it will run on.
        target: u16,
        /// Whether an interrupt, not the current thread itself, woke it.
        interrupt: bool,
    },
    /// A new thread.
    Fork {
        /// Its id.
        child: i32,
        /// Its name.
        name: String,
        /// Whether it belongs to the same process.
        thread: bool,
    },
    /// A thread has another name.
    Rename {
        /// The new name.
        name: String,
    },
    /// The thread ends.
    Ended,
    /// A file was opened; sent before the exit of its call.
    Opened(Opened),
    /// The data that a call sends; told before the call's exit.
    Replied {
        /// When the call began, monotonic clock.
        begun_ns: u64,
        /// How the data ends.
        status: TransactionStatus,
    },
    /// A block request was given to a device, `(major << 20) | minor`.
    Issue {
        /// Device.
        device: u32,
        /// First sector.
        sector: u64,
        /// Length.
        sectors: u32,
        /// The kernel's letters, such as `WS` or `FF`.
        flags: [u8; 8],
    },
    /// A block request completed.
    Complete {
        /// Device.
        device: u32,
        /// First sector.
        sector: u64,
        /// Length.
        sectors: u32,
        /// The kernel's letters.
        flags: [u8; 8],
    },
    /// A request was handed to an io_uring.
    UringSubmit {
        /// The kernel's request; the same in its completion.
        request: u64,
        /// Operation, `IORING_OP_…`.
        operation: u8,
    },
    /// A request of an io_uring completed.
    UringComplete {
        /// The kernel's request.
        request: u64,
        /// Its result.
        result: i64,
    },
}
