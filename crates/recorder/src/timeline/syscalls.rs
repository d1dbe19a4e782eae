//! Meaning of the system calls of this machine, by their number.

use tierwise_recording::CallKind;

/// Not in the library of the kernel's names.
#[cfg(target_arch = "x86_64")]
const IO_PGETEVENTS: libc::c_long = 333;
/// As generic kernels number it.
#[cfg(not(target_arch = "x86_64"))]
const IO_PGETEVENTS: libc::c_long = 292;

/// Where in the file a call begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallOffset {
    None,
    /// The descriptor's own position, which the call moves.
    Position,
    Argument(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallSize {
    None,
    Result,
    Argument(usize),
}

/// Effect of a call on the numbers of open files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DescriptorChange {
    None,
    /// The result is a new number; The tracer tells its path.
    Open,
    /// The result is a new number for the object that the words name.
    Create(&'static str),
    /// The result is another number for argument 0.
    Duplicate,
    /// As [`DescriptorChange::Duplicate`], if argument 1 is a command that does so.
    Control,
    /// Argument 0 is free again.
    Close,
    /// Arguments 0 to 1 are free again.
    CloseRange,
    /// Moves the position of argument 0 to the result.
    Seek,
}

/// How a call's arguments are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallShape {
    /// What it asks; of a socket or pipe, `Read` is `Receive` and `Write` is `Send`.
    pub kind: CallKind,
    /// The argument that is a descriptor.
    pub descriptor: Option<usize>,
    pub offset: CallOffset,
    pub size: CallSize,
    pub change: DescriptorChange,
    /// Whether requests to devices that are made in it go on after it (aio).
    pub submits: bool,
}

impl CallShape {
    const fn of(kind: CallKind) -> Self {
        Self {
            kind,
            descriptor: None,
            offset: CallOffset::None,
            size: CallSize::None,
            change: DescriptorChange::None,
            submits: false,
        }
    }

    const fn on(kind: CallKind, descriptor: usize) -> Self {
        Self {
            descriptor: Some(descriptor),
            ..Self::of(kind)
        }
    }

    const fn moved(self, offset: CallOffset, size: CallSize) -> Self {
        Self {
            offset,
            size,
            ..self
        }
    }

    const fn changing(change: DescriptorChange) -> Self {
        Self {
            change,
            ..Self::of(CallKind::Other)
        }
    }

    const fn opening() -> Self {
        Self {
            change: DescriptorChange::Open,
            ..Self::of(CallKind::Name)
        }
    }

    /// Whether its entry is traced; of messages and polls, the tracer takes exits alone.
    pub(crate) fn is_entered(&self) -> bool {
        let message_or_poll = matches!(
            self.kind,
            CallKind::Receive | CallKind::Send | CallKind::Poll
        );
        !message_or_poll || self.change != DescriptorChange::None
    }

    /// Whether the call matters only if the thread waited in it.
    pub(crate) fn is_bookkeeping(&self) -> bool {
        self.kind == CallKind::Other
    }
}

/// The shape of a call; `Other` for those that are not known here.
pub(crate) fn call_shape(number: u32) -> CallShape {
    let number = libc::c_long::from(number);
    data_call_shape(number)
        .or_else(|| waiting_call_shape(number))
        .or_else(|| naming_call_shape(number))
        .unwrap_or_else(|| CallShape::of(CallKind::Other))
}

/// Calls that move bytes or make them durable.
fn data_call_shape(number: libc::c_long) -> Option<CallShape> {
    use CallKind::{Read, Receive, Resize, Send, Sync, Write};
    use CallOffset::{Argument, Position};
    Some(match number {
        libc::SYS_read | libc::SYS_readv => {
            CallShape::on(Read, 0).moved(Position, CallSize::Result)
        }
        libc::SYS_write | libc::SYS_writev => {
            CallShape::on(Write, 0).moved(Position, CallSize::Result)
        }
        libc::SYS_pread64 | libc::SYS_preadv | libc::SYS_preadv2 => {
            CallShape::on(Read, 0).moved(Argument(3), CallSize::Result)
        }
        libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_pwritev2 => {
            CallShape::on(Write, 0).moved(Argument(3), CallSize::Result)
        }
        libc::SYS_copy_file_range => CallShape::on(Write, 2).moved(Position, CallSize::Result),
        libc::SYS_sendfile => CallShape::on(Write, 0).moved(Position, CallSize::Result),
        libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_syncfs => CallShape::on(Sync, 0),
        libc::SYS_sync_file_range => {
            CallShape::on(Sync, 0).moved(Argument(1), CallSize::Argument(2))
        }
        libc::SYS_msync | libc::SYS_sync => CallShape::of(Sync),
        libc::SYS_fallocate => CallShape::on(Resize, 0).moved(Argument(2), CallSize::Argument(3)),
        libc::SYS_ftruncate => CallShape::on(Resize, 0),
        libc::SYS_recvfrom | libc::SYS_recvmsg | libc::SYS_recvmmsg => {
            CallShape::on(Receive, 0).moved(CallOffset::None, CallSize::Result)
        }
        libc::SYS_sendto | libc::SYS_sendmsg | libc::SYS_sendmmsg => {
            CallShape::on(Send, 0).moved(CallOffset::None, CallSize::Result)
        }
        _ => return None,
    })
}

fn waiting_call_shape(number: libc::c_long) -> Option<CallShape> {
    use CallKind::{Await, Lock, Poll, Sleep};
    Some(match number {
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 | libc::SYS_ppoll | libc::SYS_pselect6 => {
            CallShape::of(Poll)
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait | libc::SYS_poll | libc::SYS_select => CallShape::of(Poll),
        libc::SYS_futex | libc::SYS_futex_waitv | libc::SYS_semop | libc::SYS_semtimedop => {
            CallShape::of(Lock)
        }
        libc::SYS_flock => CallShape::on(Lock, 0),
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => CallShape::of(Sleep),
        libc::SYS_io_uring_enter | libc::SYS_io_getevents | IO_PGETEVENTS => CallShape::of(Await),
        libc::SYS_io_submit => CallShape {
            submits: true,
            ..CallShape::of(Await)
        },
        _ => return None,
    })
}

/// Calls that change names or the numbers of open files.
fn naming_call_shape(number: libc::c_long) -> Option<CallShape> {
    use DescriptorChange::{Close, CloseRange, Control, Create, Duplicate, Seek};
    Some(match number {
        libc::SYS_openat | libc::SYS_openat2 => CallShape::opening(),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open | libc::SYS_creat => CallShape::opening(),
        libc::SYS_unlinkat | libc::SYS_renameat2 | libc::SYS_renameat => {
            CallShape::of(CallKind::Name)
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_unlink | libc::SYS_rename => CallShape::of(CallKind::Name),
        libc::SYS_close => CallShape::changing(Close),
        libc::SYS_close_range => CallShape::changing(CloseRange),
        libc::SYS_dup | libc::SYS_dup3 => CallShape::changing(Duplicate),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_dup2 => CallShape::changing(Duplicate),
        libc::SYS_fcntl => CallShape::changing(Control),
        libc::SYS_lseek => CallShape::changing(Seek),
        libc::SYS_socket => CallShape::changing(Create("socket")),
        libc::SYS_accept | libc::SYS_accept4 => CallShape {
            change: Create("socket"),
            ..CallShape::on(CallKind::Poll, 0)
        },
        libc::SYS_epoll_create1 => CallShape::changing(Create("anon_inode:[eventpoll]")),
        libc::SYS_eventfd2 => CallShape::changing(Create("anon_inode:[eventfd]")),
        libc::SYS_timerfd_create => CallShape::changing(Create("anon_inode:[timerfd]")),
        libc::SYS_signalfd4 => CallShape::changing(Create("anon_inode:[signalfd]")),
        libc::SYS_io_uring_setup => CallShape::changing(Create("anon_inode:[io_uring]")),
        _ => return None,
    })
}

/// As generic kernels, and this one, number them; the headers of the C library may be older.
const FUTEX_WAKE: libc::c_long = 454;
const FUTEX_WAIT: libc::c_long = 455;

/// Whether a call is recorded: the input and output of databases, their waits, and calls that change the numbers or names
/// of files.
pub(crate) fn is_recorded_call(number: u32) -> bool {
    let shape = call_shape(number);
    match libc::c_long::from(number) {
        // PostgreSQL asks for the length of a file so at every look; nobody's reads depend on it.
        libc::SYS_lseek | libc::SYS_flock | libc::SYS_sync => false,
        libc::SYS_truncate | libc::SYS_connect | libc::SYS_socketpair | libc::SYS_pipe2 => true,
        libc::SYS_io_setup | libc::SYS_memfd_create | FUTEX_WAKE | FUTEX_WAIT => true,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_pipe | libc::SYS_eventfd | libc::SYS_epoll_create => true,
        _ => shape.kind != CallKind::Other || shape.change != DescriptorChange::None,
    }
}

/// Whether a call cuts or extends a file to the length in argument 1.
pub(crate) fn sets_file_length(number: u32) -> bool {
    libc::c_long::from(number) == libc::SYS_ftruncate
}

/// Whether a call takes a name away.
pub(crate) fn removes_name(number: u32) -> bool {
    match libc::c_long::from(number) {
        libc::SYS_unlinkat => true,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_unlink => true,
        _ => false,
    }
}

/// Kind of a request handed to an io_uring, by its `IORING_OP_…`.
pub(crate) fn uring_call_kind(operation: u8) -> CallKind {
    match operation {
        1 | 4 | 22 => CallKind::Read,
        2 | 5 | 23 => CallKind::Write,
        3 | 8 => CallKind::Sync,
        6 | 29 => CallKind::Poll,
        9 | 26 => CallKind::Send,
        10 | 27 => CallKind::Receive,
        11 | 12 | 15 => CallKind::Sleep,
        17 => CallKind::Resize,
        18 | 28 | 35 | 36 => CallKind::Name,
        _ => CallKind::Other,
    }
}
