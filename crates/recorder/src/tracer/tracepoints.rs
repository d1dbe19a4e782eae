//! Which tracepoints are switched on, and where the fields of their records lie.

use std::fs;
use std::path::Path;

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
