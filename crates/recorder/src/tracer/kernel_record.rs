//! A record of the programs in the kernel becomes an event; `bpf/tracer.bpf.c` has the other side of what is defined here.

use tierwise_recording::BlockOp;

use crate::trace_event::{BlockRequest, SwitchedOutState, TraceEvent, TraceEventKind};

/// As the programs write it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct KernelRecord {
    /// Monotonic clock.
    pub time_ns: u64,
    pub sequence: u32,
    pub kind: u8,
    pub flags: u8,
    pub unused: u16,
    /// Thread that it is about, or that ran.
    pub tid: i32,
    pub number: u32,
    pub words: [u64; 4],
}

pub const ENTER: u8 = 1;
pub const EXIT: u8 = 2;
pub const SWITCH: u8 = 3;
pub const WAKING: u8 = 4;
pub const FORK: u8 = 5;
pub const RENAME: u8 = 6;
pub const ENDED: u8 = 7;
pub const ISSUE: u8 = 8;
pub const COMPLETE: u8 = 9;
pub const URING_SUBMIT: u8 = 10;
pub const URING_COMPLETE: u8 = 11;
pub const REPLY: u8 = 12;

/// Flag of a wake-up: put off after a device's interrupt.
pub const SOFT_INTERRUPT: u8 = 2;

// Flags of a request.
const PREFLUSH: u8 = 1;
const FUA: u8 = 2;
const SYNC: u8 = 4;
const META: u8 = 8;
const BY_PROCESS: u8 = 16;
const BY_JOURNAL: u8 = 32;

impl KernelRecord {
    /// The event; none for a reply or a request that moves no data.
    pub fn event(&self, cpu: u16) -> Option<TraceEvent> {
        Some(TraceEvent {
            time_ns: self.time_ns,
            cpu,
            tid: self.tid,
            kind: self.event_kind()?,
        })
    }

    fn event_kind(&self) -> Option<TraceEventKind> {
        let [first, second, third, fourth] = self.words;
        Some(match self.kind {
            ENTER => TraceEventKind::Enter {
                number: self.number,
                arguments: [first, second, third, fourth],
            },
            EXIT => TraceEventKind::Exit {
                number: self.number,
                result: first.cast_signed(),
            },
            SWITCH => TraceEventKind::Switch {
                previous: self.tid,
                state: switched_out_state(self.number),
                next: thread_id_of(first),
            },
            WAKING => TraceEventKind::Waking {
                woken: thread_id_of(first),
                target: u16::try_from(self.number).ok()?,
                interrupt: self.flags != 0,
            },
            FORK => TraceEventKind::Fork {
                child: self.number.cast_signed(),
                name: zero_ended_name([first, second]),
                thread: self.flags != 0,
            },
            RENAME => TraceEventKind::Rename {
                name: zero_ended_name([first, second]),
            },
            ENDED => TraceEventKind::Ended,
            ISSUE => TraceEventKind::Issue(self.request()?),
            COMPLETE => TraceEventKind::Complete(self.request()?),
            URING_SUBMIT => TraceEventKind::UringSubmit {
                request: first,
                operation: u8::try_from(self.number).ok()?,
            },
            URING_COMPLETE => TraceEventKind::UringComplete {
                request: first,
                result: self.number.cast_signed().into(),
            },
            _ => return None,
        })
    }

    /// Whether a wake-up was made in a software interrupt, and in no other.
    pub fn in_soft_interrupt(&self) -> bool {
        self.flags == SOFT_INTERRUPT
    }

    fn request(&self) -> Option<BlockRequest> {
        let [device, sector, sectors, _] = self.words;
        let has = |flag: u8| self.flags & flag != 0;
        Some(BlockRequest {
            device: u32::try_from(device).ok()?,
            // A flush has none.
            sector: if sector == u64::MAX { 0 } else { sector },
            sectors: u32::try_from(sectors).ok()?,
            op: block_operation(self.number)?,
            preflush: has(PREFLUSH),
            fua: has(FUA),
            sync: has(SYNC),
            meta: has(META),
            by_process: has(BY_PROCESS),
            by_journal: has(BY_JOURNAL),
        })
    }
}

/// By the kernel's number (`enum req_op`).
fn block_operation(number: u32) -> Option<BlockOp> {
    match number {
        0 => Some(BlockOp::Read),
        1 => Some(BlockOp::Write),
        2 => Some(BlockOp::Flush),
        3 | 5 => Some(BlockOp::Discard),
        _ => None,
    }
}

fn thread_id_of(word: u64) -> i32 {
    word as i32
}

/// Up to the first zero.
fn zero_ended_name(words: [u64; 2]) -> String {
    let bytes = words.map(u64::to_ne_bytes).concat();
    let end = bytes.iter().position(|&byte| byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}

/// The kernel's bits, as `sched_switch` prints them.
fn switched_out_state(bits: u32) -> SwitchedOutState {
    const PREEMPTED: u32 = 0x100;
    match bits {
        0 => SwitchedOutState::Runnable,
        _ if bits & PREEMPTED != 0 => SwitchedOutState::Runnable,
        _ if bits & 0x30 != 0 => SwitchedOutState::Dead,
        _ if bits & 0x0c != 0 => SwitchedOutState::Stopped,
        _ if bits & 0x02 != 0 => SwitchedOutState::Disk,
        _ => SwitchedOutState::Sleeping,
    }
}
