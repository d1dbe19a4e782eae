//! Which tracepoints are switched on, and how each becomes an event.

/// Meaning of a tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A system call begins.
    Enter,
    /// A system call ends.
    Exit,
    /// The core goes to another thread.
    Switch,
    /// A thread can run.
    Waking,
    /// A thread is new.
    Fork,
    /// A thread has another name.
    Rename,
    /// A thread ends.
    Ended,
    /// A block request goes to its device.
    Issue,
    /// A block request is done.
    Complete,
    /// A request goes into a ring.
    UringSubmit,
    /// A request of a ring is done.
    UringComplete,
}

/// System calls that are traced at entry and exit: the input and output of databases, their waits, and calls
/// that change the numbers or names of files. A kernel or machine that lacks one does without.
pub const SYSTEM_CALLS: [&str; 63] = [
    "read",
    "pread64",
    "readv",
    "preadv",
    "preadv2",
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
    "sendfile64",
    "copy_file_range",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "syncfs",
    "msync",
    "fallocate",
    "ftruncate",
    "truncate",
    "open",
    "openat",
    "openat2",
    "creat",
    "unlink",
    "unlinkat",
    "rename",
    "renameat",
    "renameat2",
    "futex",
    "futex_wait",
    "futex_waitv",
    "futex_wake",
    "semop",
    "semtimedop",
    "nanosleep",
    "clock_nanosleep",
    "io_uring_setup",
    "io_uring_enter",
    "io_setup",
    "io_submit",
    "io_getevents",
    "io_pgetevents",
    "close",
    "close_range",
    "dup",
    "dup2",
    "dup3",
    "fcntl",
    "socket",
    "socketpair",
    "accept",
    "accept4",
    "connect",
    "pipe",
    "pipe2",
    "eventfd",
    "eventfd2",
    "epoll_create",
    "epoll_create1",
    "signalfd4",
    "timerfd_create",
    "memfd_create",
];

/// System calls of which only these exits are traced, by a filter on the result: messages that moved bytes, and polls that
/// timed out. Servers receive in vain and poll before nearly every message.
pub const RESULTS: [(&str, &str); 13] = [
    ("recvfrom", MOVED),
    ("recvmsg", MOVED),
    ("recvmmsg", MOVED),
    ("sendto", MOVED),
    ("sendmsg", MOVED),
    ("sendmmsg", MOVED),
    ("epoll_wait", TIMED_OUT),
    ("epoll_pwait", TIMED_OUT),
    ("epoll_pwait2", TIMED_OUT),
    ("poll", TIMED_OUT),
    ("ppoll", TIMED_OUT),
    ("select", TIMED_OUT),
    ("pselect6", TIMED_OUT),
];

const MOVED: &str = "ret > 0";
const TIMED_OUT: &str = "ret == 0";

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

/// A request to a block device is done.
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
