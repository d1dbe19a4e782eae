//! Status in a session's reply: its last bytes are copied by BPF programs at the entry of the call, of recorded
//! processes only, decoded at once, and reported before the exit of the call.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::Path;

use tierwise_recording::TransactionStatus;

use super::bpf::Register::*;
use super::bpf::{Assembler, Attachment, Helper, Jump, Map, Watch};
use crate::event::{Event, EventKind};
use crate::protocol::{self, TAIL_BYTES};
use crate::tracer::decode::Format;

/// The call with which servers reply: PostgreSQL, MySQL and MariaDB use `send`, which is this call. Data sent
/// by another call has no status.
const SEND: &str = "syscalls/sys_enter_sendto";
const FORK: &str = "task/task_newtask";

/// Buffer for unread records, of 40 bytes.
const RING_BYTES: u32 = 4 << 20;
/// Processes that may be recorded at once.
const PROCESSES: u32 = 16_384;
/// Length of a process's number as a key.
const KEY_BYTES: u32 = 8;

/// Where in a record the last bytes stand, after time, thread and length.
const TAIL_OFFSET: i32 = 24;
/// After them, whether they could be read.
const RESULT_OFFSET: i32 = TAIL_OFFSET + TAIL_BYTES as i32;
const RECORD_BYTES: i32 = RESULT_OFFSET + 8;
/// No reader waits for a record: the ring is emptied at regular intervals.
const WAKE_NOBODY: i32 = 1;

/// Loads the programs, if this kernel has the tracepoints.
pub fn load(tracefs: &Path) -> io::Result<Watch> {
    let mut watch = Watch::new(RING_BYTES, || Map::hash(KEY_BYTES, KEY_BYTES, PROCESSES))?;
    let lacks = |event: &str| io::Error::other(format!("this kernel lacks {event}"));
    let send = Format::read(tracefs, SEND).ok_or_else(|| lacks(SEND))?;
    let fork = Format::read(tracefs, FORK).ok_or_else(|| lacks(FORK))?;
    let sent = send.offset("buff").zip(send.offset("len"));
    let (bytes, length) = sent.ok_or_else(|| lacks(SEND))?;
    let child = fork.offset("pid").ok_or_else(|| lacks(FORK))?;
    watch.load(send.id, |recorded, ring| {
        send_code(bytes, length, recorded, ring)
    })?;
    watch.load(fork.id, |recorded, _| fork_code(child, recorded))?;
    Ok(watch)
}

/// Runs them, for these processes and their descendants, until the returned value is dropped.
pub fn attach(watch: &Watch, pids: &[i32]) -> io::Result<Vec<Attachment>> {
    for pid in pids {
        watch.map.insert(pid.unsigned_abs().into())?;
    }
    watch.attach()
}

/// The program of the entry of `send`, by where its record has the address of the bytes and their number.
fn send_code(bytes: i16, length: i16, recorded: &Map, ring: &Map) -> Assembler {
    let mut code = Assembler::default();
    code.load(R8, R1, length);
    code.load(R9, R1, bytes);
    code.call(Helper::CurrentThread);
    code.copy(R7, R0);
    let other = unless_recorded(&mut code, recorded);
    let full = code.reserve(ring, RECORD_BYTES);
    code.store(R6, 8, R7);
    code.store(R6, 16, R8);
    code.call(Helper::Time);
    code.store(R6, 0, R0);
    code.copy(R2, R8);
    let few = code.if_below(R2, TAIL_BYTES as i32);
    code.set(R2, TAIL_BYTES as i32);
    code.land(few);
    code.copy(R3, R9);
    code.add_register(R3, R8);
    code.subtract_register(R3, R2);
    code.copy(R1, R6);
    code.add(R1, TAIL_OFFSET);
    code.call(Helper::ReadUser);
    code.store(R6, RESULT_OFFSET as i16, R0);
    code.submit(WAKE_NOBODY);
    code.land(full);
    code.land(other);
    code.exit();
    code
}

/// The program where a process or thread begins: children of recorded processes are recorded.
fn fork_code(child: i16, recorded: &Map) -> Assembler {
    let mut code = Assembler::default();
    code.load_half(R8, R1, child);
    code.call(Helper::CurrentThread);
    let other = unless_recorded(&mut code, recorded);
    code.store(R10, -8, R8);
    code.set_stack(R3, -8);
    code.set(R4, 0);
    code.call_with_key(Helper::MapUpdate, recorded);
    code.land(other);
    code.exit();
    code
}

/// Jumps unless the process of the thread in `R0` is recorded.
fn unless_recorded(code: &mut Assembler, recorded: &Map) -> Jump {
    code.shift_right(R0, 32);
    code.store(R10, -8, R0);
    code.call_with_key(Helper::MapLookup, recorded);
    code.if_zero(R0)
}

/// Data sent by a call. Its bytes are not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// When it began, monotonic clock.
    pub time_ns: u64,
    pub tid: i32,
    pub length_bytes: u64,
    /// Status in its last bytes.
    pub status: TransactionStatus,
}

impl Reply {
    /// Reads a record; none if the bytes could not be read.
    pub fn heard(record: &[u8]) -> Option<Self> {
        let bytes = |at: usize| -> Option<[u8; 8]> { record.get(at..at + 8)?.try_into().ok() };
        let word = |at: usize| bytes(at).map(u64::from_ne_bytes);
        if word(RESULT_OFFSET as usize)? != 0 {
            return None;
        }
        let (length_bytes, tail) = (word(16)?, bytes(TAIL_OFFSET as usize)?);
        let seen = usize::try_from(length_bytes).map_or(TAIL_BYTES, |all| all.min(TAIL_BYTES));
        Some(Self {
            time_ns: word(0)?,
            tid: word(8)? as i32,
            length_bytes,
            status: protocol::status(&tail[..seen], length_bytes),
        })
    }
}

/// Replies of a burst, waiting for the exits of their calls.
pub struct Replies<'a> {
    waiting: HashMap<i32, VecDeque<&'a Reply>>,
}

impl<'a> Replies<'a> {
    pub fn new(replies: &'a [Reply]) -> Self {
        let mut waiting: HashMap<_, VecDeque<_>> = HashMap::new();
        for reply in replies {
            waiting.entry(reply.tid).or_default().push_back(reply);
        }
        Self { waiting }
    }

    /// The event to insert before `event`: what its call sends. Earlier calls whose exits were not told, as they sent
    /// nothing, are passed over.
    pub fn before(&mut self, event: &Event) -> Option<Event> {
        let EventKind::Exit { number, result } = event.kind else {
            return None;
        };
        if i64::from(number) != libc::SYS_sendto {
            return None;
        }
        let waiting = self.waiting.get_mut(&event.tid)?;
        let mut last = None;
        while (waiting.front()).is_some_and(|reply| reply.time_ns <= event.time_ns) {
            last = waiting.pop_front();
        }
        let whole = |reply: &&Reply| u64::try_from(result) == Ok(reply.length_bytes);
        let reply = last.filter(whole)?;
        Some(Event {
            kind: EventKind::Replied {
                begun_ns: reply.time_ns,
                status: reply.status,
            },
            ..*event
        })
    }
}
