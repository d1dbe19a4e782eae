//! A record of a tracepoint becomes an event.

use std::fs;
use std::path::Path;

use crate::event::{Event, EventKind, Request, SwitchState};

/// Flag of a record made in a hardware interrupt, and of one made in a software interrupt.
const HARD_INTERRUPT: u8 = 0x08;
const SOFT_INTERRUPT: u8 = 0x10;
const IN_NMI: u8 = 0x40;

const SAME_PROCESS: u64 = 0x1_0000;

/// Where in a system call's record the arguments begin.
const ARGUMENTS_OFFSET: usize = 16;

/// Decodes the records of the tracepoints that it learned.
#[derive(Default)]
pub struct Decoder {
    layouts: Vec<Option<Layout>>,
}

/// A tracepoint's meaning and its fields, in the order that [`field_names`] gives.
#[derive(Clone, Debug)]
struct Layout {
    meaning: Meaning,
    fields: [Option<Field>; 4],
}

/// Fields that are read; alternatives (older names) after a bar, and a question mark where it may be missing.
fn field_names(meaning: Meaning) -> &'static [&'static str] {
    match meaning {
        Meaning::Enter => &["__syscall_nr|nr|id"],
        Meaning::Exit => &["__syscall_nr|nr|id", "ret"],
        Meaning::Switch => &["prev_pid", "prev_state", "next_pid"],
        Meaning::Waking => &["pid", "target_cpu"],
        Meaning::Fork => &["pid", "comm", "clone_flags"],
        Meaning::Rename => &["newcomm", "?pid"],
        Meaning::Ended => &["pid"],
        Meaning::Issue | Meaning::Complete => &["dev", "sector", "nr_sector", "rwbs"],
        Meaning::UringSubmit => &["user_data", "opcode", "?req"],
        Meaning::UringComplete => &["user_data", "res", "?req"],
    }
}

impl Decoder {
    /// Learns a tracepoint; false if it lacks a field that is needed.
    pub fn learn(&mut self, meaning: Meaning, format: &Format) -> bool {
        let mut fields = [None; 4];
        for (slot, names) in fields.iter_mut().zip(field_names(meaning)) {
            *slot = (names.trim_start_matches('?').split('|')).find_map(|name| format.field(name));
            if slot.is_none() && !names.starts_with('?') {
                return false;
            }
        }
        let at = usize::from(format.id);
        if self.layouts.len() <= at {
            self.layouts.resize(at + 1, None);
        }
        self.layouts[at] = Some(Layout { meaning, fields });
        true
    }

    /// The event of a record; none for a record that is unknown or too short.
    pub fn decode(&self, cpu: u16, time_ns: u64, record: &[u8]) -> Option<Event> {
        let id = u16::from_ne_bytes(record.get(..2)?.try_into().ok()?);
        let current = i32::from_ne_bytes(record.get(4..8)?.try_into().ok()?);
        let layout = self.layouts.get(usize::from(id))?.as_ref()?;
        let kind = layout.kind(record)?;
        let tid = match &kind {
            EventKind::Switch { previous, .. } => *previous,
            EventKind::Rename { .. } => layout.thread(1, record).unwrap_or(current),
            EventKind::Ended => layout.thread(0, record)?,
            _ => current,
        };
        Some(Event {
            time_ns,
            cpu,
            tid,
            kind,
        })
    }
}

impl Layout {
    fn kind(&self, record: &[u8]) -> Option<EventKind> {
        Some(match self.meaning {
            Meaning::Enter => EventKind::Enter {
                number: u32::try_from(self.number(0, record)?).ok()?,
                arguments: arguments(record),
            },
            Meaning::Exit => EventKind::Exit {
                number: u32::try_from(self.number(0, record)?).ok()?,
                result: self.number(1, record)?.cast_signed(),
            },
            Meaning::Switch => EventKind::Switch {
                previous: self.thread(0, record)?,
                state: switch_state(self.number(1, record)?),
                next: self.thread(2, record)?,
            },
            Meaning::Waking => EventKind::Waking {
                woken: self.thread(0, record)?,
                target: u16::try_from(self.number(1, record)?).ok()?,
                interrupt: record.get(2)? & (HARD_INTERRUPT | SOFT_INTERRUPT | IN_NMI) != 0,
            },
            Meaning::Fork => EventKind::Fork {
                child: self.thread(0, record)?,
                name: self.fields[1]?.text(record)?,
                thread: self.number(2, record)? & SAME_PROCESS != 0,
            },
            Meaning::Rename => EventKind::Rename {
                name: self.fields[0]?.text(record)?,
            },
            Meaning::Ended => EventKind::Ended,
            Meaning::Issue => EventKind::Issue(self.block_request(record)?),
            Meaning::Complete => EventKind::Complete(self.block_request(record)?),
            Meaning::UringSubmit => EventKind::UringSubmit {
                request: self.request(record)?,
                operation: u8::try_from(self.number(1, record)?).ok()?,
            },
            Meaning::UringComplete => EventKind::UringComplete {
                request: self.request(record)?,
                result: self.number(1, record)?.cast_signed(),
            },
        })
    }

    fn number(&self, field: usize, record: &[u8]) -> Option<u64> {
        self.fields[field]?.number(record)
    }

    fn thread(&self, field: usize, record: &[u8]) -> Option<i32> {
        i32::try_from(self.number(field, record)?.cast_signed()).ok()
    }

    fn block_request(&self, record: &[u8]) -> Option<Request> {
        let letters = self.fields[3]?.bytes(record)?;
        let letters = letters.iter().take_while(|&&letter| letter != 0);
        let mut flags = [0; 8];
        for (slot, &letter) in flags.iter_mut().zip(letters) {
            *slot = letter;
        }
        Some(Request {
            device: u32::try_from(self.number(0, record)?).ok()?,
            sector: self.number(1, record)?,
            sectors: u32::try_from(self.number(2, record)?).ok()?,
            flags,
        })
    }

    /// The kernel's request; where the record lacks that (before 5.17), the program's name for it.
    fn request(&self, record: &[u8]) -> Option<u64> {
        let request = self.fields[2].and_then(|field| field.number(record));
        request.map_or_else(|| self.number(0, record), Some)
    }
}

/// Whether a record was made in a software interrupt, and in no other.
pub fn in_soft_interrupt(record: &[u8]) -> bool {
    let flags = record.get(2).copied().unwrap_or_default();
    flags & (HARD_INTERRUPT | SOFT_INTERRUPT | IN_NMI) == SOFT_INTERRUPT
}

fn arguments(record: &[u8]) -> [u64; 6] {
    let mut arguments = [0; 6];
    let values = record.get(ARGUMENTS_OFFSET..).unwrap_or_default();
    for (argument, bytes) in arguments.iter_mut().zip(values.chunks_exact(8)) {
        *argument = u64::from_ne_bytes(bytes.try_into().expect("chunks of eight"));
    }
    arguments
}

/// The kernel's bits, as `sched_switch` prints them.
fn switch_state(bits: u64) -> SwitchState {
    const PREEMPTED: u64 = 0x100;
    match bits {
        0 => SwitchState::Runnable,
        _ if bits & PREEMPTED != 0 => SwitchState::Runnable,
        _ if bits & 0x30 != 0 => SwitchState::Dead,
        _ if bits & 0x0c != 0 => SwitchState::Stopped,
        _ if bits & 0x02 != 0 => SwitchState::Disk,
        _ => SwitchState::Sleeping,
    }
}

// Which tracepoints are switched on, and where the fields of their records lie.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub offset: usize,
    pub size: usize,
    signed: bool,
}

impl Field {
    /// The number in it, sign extended where the field is signed; none where the record is too short.
    pub fn number(self, record: &[u8]) -> Option<u64> {
        let bytes = self.bytes(record)?;
        let mut wide = [0; 8];
        wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let shift = 64 - 8 * u32::try_from(bytes.len()).ok()?;
        let raw = u64::from_le_bytes(wide) << shift;
        Some(if self.signed {
            (raw.cast_signed() >> shift).cast_unsigned()
        } else {
            raw >> shift
        })
    }

    pub fn bytes(self, record: &[u8]) -> Option<&[u8]> {
        (self.size > 0).then_some(())?;
        record.get(self.offset..self.offset + self.size)
    }

    /// The text in it, up to the first zero.
    pub fn text(self, record: &[u8]) -> Option<String> {
        let bytes = self.bytes(record)?;
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// Number that begins its records.
    pub id: u16,
    fields: Vec<(String, Field)>,
}

impl Format {
    /// Of a tracepoint `SYSTEM/NAME`, below a folder with `events`; none if this kernel lacks it.
    pub fn read(folder: &Path, event: &str) -> Option<Self> {
        let file = folder.join("events").join(event).join("format");
        Self::parse(&fs::read_to_string(file).ok()?)
    }

    /// From the kernel's text; none if that is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID: "))?;
        Some(Self {
            id: id.trim().parse().ok()?,
            fields: text.lines().filter_map(field).collect(),
        })
    }

    pub fn field(&self, name: &str) -> Option<Field> {
        let found = self.fields.iter().find(|(own, _)| own == name);
        found.map(|&(_, field)| field)
    }

    pub fn offset(&self, name: &str) -> Option<i16> {
        i16::try_from(self.field(name)?.offset).ok()
    }
}

/// A line `field:TYPE NAME;  offset:N;  size:N;  signed:N;`.
fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';');
    let declaration = parts.next()?.split('[').next()?;
    let name = declaration.rsplit([' ', '*']).next()?;
    let mut number =
        |key: &str| -> Option<usize> { parts.next()?.trim().strip_prefix(key)?.parse().ok() };
    let field = Field {
        offset: number("offset:")?,
        size: number("size:")?,
        signed: number("signed:")? == 1,
    };
    (field.offset < 1 << 16 && field.size < 1 << 16).then(|| (name.to_owned(), field))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Enter,
    Exit,
    Switch,
    Waking,
    Fork,
    Rename,
    Ended,
    Issue,
    Complete,
    UringSubmit,
    UringComplete,
}

/// System calls that are traced at entry and exit, separated by spaces: the input and output of databases, their waits,
/// and calls that change the numbers or names of files. A kernel or machine that lacks one does without.
pub const SYSTEM_CALLS: &str = "\
    read pread64 readv preadv preadv2 write pwrite64 writev pwritev pwritev2 sendfile64 copy_file_range \
    fsync fdatasync sync_file_range syncfs msync fallocate ftruncate truncate \
    open openat openat2 creat unlink unlinkat rename renameat renameat2 \
    futex futex_wait futex_waitv futex_wake semop semtimedop nanosleep clock_nanosleep \
    io_uring_setup io_uring_enter io_setup io_submit io_getevents io_pgetevents \
    close close_range dup dup2 dup3 fcntl socket socketpair accept accept4 connect pipe pipe2 eventfd \
    eventfd2 epoll_create epoll_create1 signalfd4 timerfd_create memfd_create";

/// System calls of which only these exits are traced, by a filter on the result: messages that moved bytes, and polls
/// that timed out. Servers receive in vain and poll before nearly every message.
pub const RESULTS: [(&str, &str); 2] = [
    (
        "recvfrom recvmsg recvmmsg sendto sendmsg sendmmsg",
        "ret > 0",
    ),
    (
        "epoll_wait epoll_pwait epoll_pwait2 poll ppoll select pselect6",
        "ret == 0",
    ),
];

/// Of the recorded threads and their clients.
pub const SCHEDULING: [(&str, Meaning); 6] = [
    ("sched/sched_switch", Meaning::Switch),
    ("sched/sched_waking", Meaning::Waking),
    // A new thread is woken by this one alone.
    ("sched/sched_wakeup_new", Meaning::Waking),
    ("task/task_newtask", Meaning::Fork),
    ("task/task_rename", Meaning::Rename),
    ("sched/sched_process_exit", Meaning::Ended),
];

pub const COMPLETION: &str = "block/block_rq_complete";

/// Of the whole machine: completions come in interrupts, under any thread.
pub const DEVICES: [(&str, Meaning); 5] = [
    ("block/block_rq_issue", Meaning::Issue),
    (COMPLETION, Meaning::Complete),
    ("io_uring/io_uring_submit_req", Meaning::UringSubmit),
    // Its name before Linux 6.3.
    ("io_uring/io_uring_submit_sqe", Meaning::UringSubmit),
    ("io_uring/io_uring_complete", Meaning::UringComplete),
];
