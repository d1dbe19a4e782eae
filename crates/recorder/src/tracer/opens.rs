//! The file of each open and each removal: caught by BPF programs at those calls, and reported before the end of the
//! call.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::Path;

use super::bpf::Register::*;
use super::bpf::{Assembler, Helper, Map, Watch};
use super::paths::Paths;
use crate::event::{Event, EventKind};
use crate::timeline::syscalls::{self, Change};
use crate::tracer::decode::Format;

/// Calls that open or remove a file by its name.
const CALLS: [&str; 5] = ["openat", "openat2", "open", "unlink", "unlinkat"];

/// Buffer for unread records; some two thousand, as each may hold the longest path.
const RING_BYTES: u32 = 8 << 20;
/// Calls that may be under way at once.
const CALLS_UNDER_WAY: u32 = 16_384;
/// Length of the record that the entry keeps for the exit: address and directory.
const KEPT_BYTES: u32 = 16;
/// Length of the key: process and thread.
const KEY_BYTES: u32 = 8;
/// Longest path, with its zero.
const PATH_BYTES: i32 = 4096;
const PATH_OFFSET: i32 = 40;

/// Loads the programs for the calls that this kernel has. The entry of a call keeps the path's address, the exit copies
/// the path: by then the kernel has read the path itself, so that its page is in memory.
pub fn load(tracefs: &Path) -> io::Result<Watch> {
    let kept = || Map::hash(KEY_BYTES, KEPT_BYTES, CALLS_UNDER_WAY);
    let mut watch = Watch::new(RING_BYTES, kept)?;
    for call in CALLS {
        let format = |edge: &str| Format::read(tracefs, &format!("syscalls/sys_{edge}_{call}"));
        let (Some(enter), Some(exit)) = (format("enter"), format("exit")) else {
            continue;
        };
        let path = enter.offset("filename").or(enter.offset("pathname"));
        let (Some(path), Some(result)) = (path, exit.offset("ret")) else {
            continue;
        };
        let directory = enter.offset("dfd");
        // The exit first: so an entry that is caught always finds it.
        watch.load(exit.id, |kept, ring| exit_code(result, kept, ring))?;
        watch.load(enter.id, |kept, _| entry_code(path, directory, kept))?;
    }
    Ok(watch)
}

/// The program of the entry, by where its record has the path's address and the directory's number.
fn entry_code(path: i16, directory: Option<i16>, kept: &Map) -> Assembler {
    let mut code = Assembler::default();
    code.copy(R6, R1);
    code.call(Helper::CurrentThread);
    code.store(R10, -8, R0);
    code.load(R1, R6, path);
    code.store(R10, -24, R1);
    match directory {
        Some(offset) => code.load(R1, R6, offset),
        None => code.set(R1, libc::AT_FDCWD),
    }
    code.store(R10, -16, R1);
    code.set_stack(R3, -24);
    code.set(R4, 0);
    code.call_with_key(Helper::MapUpdate, kept);
    code.exit();
    code
}

/// The program of the exit, whose record has its result at `result`.
fn exit_code(result: i16, kept: &Map, ring: &Map) -> Assembler {
    let mut code = Assembler::default();
    code.load(R7, R1, result);
    code.call(Helper::CurrentThread);
    code.copy(R8, R0);
    code.store(R10, -8, R0);
    code.call_with_key(Helper::MapLookup, kept);
    let unknown = code.if_zero(R0);
    code.load(R9, R0, 0);
    code.load(R1, R0, 8);
    code.store(R10, -16, R1);
    let failed = code.if_negative(R7);
    let full = code.reserve(ring, PATH_OFFSET + PATH_BYTES);
    code.store(R6, 8, R8);
    code.store(R6, 16, R7);
    code.load(R1, R10, -16);
    code.store(R6, 24, R1);
    code.call(Helper::Time);
    code.store(R6, 0, R0);
    code.copy(R1, R6);
    code.add(R1, PATH_OFFSET);
    code.set(R2, PATH_BYTES);
    code.copy(R3, R9);
    code.call(Helper::ReadUserText);
    code.store(R6, 32, R0);
    code.submit(0);
    code.land(failed);
    code.land(full);
    code.call_with_key(Helper::MapDelete, kept);
    code.land(unknown);
    code.exit();
    code
}

/// A call that opened or removed a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// When it ended, monotonic clock.
    pub time_ns: u64,
    pub pid: i32,
    pub tid: i32,
    /// The call's result: the number of the file, or 0 for a removal.
    pub result: i64,
    pub path: String,
}

impl Open {
    /// Reads a record of the exit while its process lives; none of a stranger's, or if the path is not known.
    pub fn heard(record: &[u8], paths: &mut Paths) -> Option<Self> {
        let word = |at: usize| Some(u64::from_ne_bytes(*record.get(at..)?.first_chunk()?));
        let (thread, result, directory) = (word(8)?, word(16)?.cast_signed(), word(24)? as i32);
        let (pid, tid) = ((thread >> 32) as i32, thread as i32);
        // With its zero; an error is a number below zero, which no length is.
        let length = usize::try_from(word(32)?).ok()?.checked_sub(1)?;
        let start = PATH_OFFSET as usize;
        let path = String::from_utf8_lossy(record.get(start..start.checked_add(length)?)?);
        if !paths.is_ours(pid) {
            return None;
        }
        let path = paths.resolve(pid, directory, &path)?;
        Some(Self {
            time_ns: word(0)?,
            pid,
            tid,
            result,
            path: Paths::of_opened(pid, result, path),
        })
    }
}

/// Largest distance between the two records of one end of a call.
const SLACK_NS: u64 = 2_000_000;

/// Opens of a burst, waiting for the ends of their calls.
pub struct Opens<'a> {
    waiting: HashMap<(i32, i64), VecDeque<&'a Open>>,
    /// Opens that succeeded.
    pub seen: u64,
    /// Those whose path is not known.
    pub unresolved: u64,
}

impl<'a> Opens<'a> {
    pub fn new(opens: &'a [Open]) -> Self {
        let mut waiting: HashMap<_, VecDeque<_>> = HashMap::new();
        for open in opens {
            let key = (open.tid, open.result);
            waiting.entry(key).or_default().push_back(open);
        }
        Self {
            waiting,
            seen: 0,
            unresolved: 0,
        }
    }

    /// The event to insert before `event`: its call opens a file, or removes one (number -1).
    pub fn before(&mut self, event: &Event) -> Option<Event> {
        let EventKind::Exit { result, number } = event.kind else {
            return None;
        };
        let opens = syscalls::shape(number).change == Change::Open;
        if result < 0 || !(opens || syscalls::unlinks(number)) {
            return None;
        }
        let path = self.path(event.tid, result, event.time_ns);
        self.seen += u64::from(opens);
        self.unresolved += u64::from(opens && path.is_none());
        let fd = if opens { result } else { -1 };
        Some(Event {
            kind: EventKind::Opened {
                fd: i32::try_from(fd).ok()?,
                path: path?,
            },
            ..*event
        })
    }

    fn path(&mut self, tid: i32, result: i64, time_ns: u64) -> Option<String> {
        let waiting = self.waiting.get_mut(&(tid, result))?;
        while (waiting.front()).is_some_and(|open| open.time_ns + SLACK_NS < time_ns) {
            waiting.pop_front();
        }
        let near = |open: &&mut &Open| open.time_ns <= time_ns + SLACK_NS;
        waiting.front_mut().filter(near)?;
        waiting.pop_front().map(|open| open.path.clone())
    }
}
