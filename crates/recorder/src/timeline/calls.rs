//! System calls from their entry to their exit.

use tierwise_recording::{Call, CallKind, NONE, TransactionStatus, UNKNOWN};

use super::files::{Descriptors, Files};
use super::syscalls::{self, Change, Offset, Shape, Size};
use super::track::Track;

/// A call under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Underway {
    number: u32,
    arguments: [u64; 6],
    shape: Shape,
    /// Where it lies among the calls of its thread.
    pub index: u32,
    /// File number whose path the tracer reported in this call.
    opened: Option<i32>,
}

impl Underway {
    /// Whether it is the call of this number.
    pub(super) fn is(&self, number: u32) -> bool {
        self.number == number
    }

    fn fd(&self, argument: usize) -> i32 {
        self.arguments[argument] as i32
    }

    /// Whether requests to devices that are made in it go on after it.
    pub(super) fn submits(&self) -> bool {
        self.shape.submits
    }
}

/// The files and numbers of all processes, which calls use and change.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub files: Files,
    pub descriptors: Descriptors,
}

impl Tables {
    /// A call begins: its row, not yet ended.
    pub(super) fn enter(
        &mut self,
        track: &mut Track,
        pid: i32,
        time_ns: u64,
        number: u32,
        arguments: [u64; 6],
    ) -> Underway {
        let mut call = Underway {
            number,
            arguments,
            shape: syscalls::shape(number),
            index: track.calls.len() as u32,
            opened: None,
        };
        track.call = call.index;
        let row = self.row(&mut call, track.thread, pid, time_ns);
        track.calls.push(row);
        self.release(&call, pid);
        call
    }

    /// The row of a call as far as its arguments tell.
    fn row(&mut self, call: &mut Underway, thread: u32, pid: i32, time_ns: u64) -> Call {
        let descriptor = call.shape.descriptor.map(|argument| call.fd(argument));
        let known = descriptor.and_then(|fd| self.descriptors.get(pid, fd).copied());
        let file = known.map_or(NONE, |known| known.file);
        let offset_bytes = match call.shape.offset {
            Offset::None => UNKNOWN,
            Offset::Argument(argument) => call.arguments[argument],
            Offset::Position => known.map_or(UNKNOWN, |known| known.position),
        };
        call.shape.kind = self.kind_of(&call.shape, file);
        Call {
            thread,
            start_ns: time_ns,
            end_ns: time_ns,
            kind: call.shape.kind,
            file,
            offset_bytes,
            size_bytes: 0,
            asynchronous: false,
            failed: false,
            transaction_status: None,
        }
    }

    /// Every open of a file is known, so a number that is not known is a pipe or the like, unless the call
    /// takes an offset.
    fn kind_of(&self, shape: &Shape, file: u32) -> CallKind {
        let stream = shape.offset == Offset::Position && self.files.is_stream(file);
        match shape.kind {
            CallKind::Read if stream => CallKind::Receive,
            CallKind::Write if stream => CallKind::Send,
            kind => kind,
        }
    }

    /// Numbers are free as soon as a close begins: another thread may get them before it ends.
    fn release(&mut self, call: &Underway, pid: i32) {
        match call.shape.change {
            Change::Close => self.descriptors.close(pid, call.fd(0)),
            Change::CloseRange => {
                self.descriptors
                    .close_range(pid, call.arguments[0], call.arguments[1]);
            }
            _ => {}
        }
    }

    /// The tracer tells the path of the file that a call under way opens, or names if the number is negative.
    pub(super) fn opened(&mut self, call: &mut Underway, calls: &mut [Call], fd: i32, path: &str) {
        let file = self.files.intern(path);
        if let Some(row) = calls.get_mut(call.index as usize) {
            row.file = file;
        }
        call.opened = Some(fd);
    }

    /// A call ends.
    pub(super) fn exit(
        &mut self,
        track: &mut Track,
        pid: i32,
        time_ns: u64,
        call: &Underway,
        result: i64,
    ) {
        track.call = NONE;
        let Some(row) = track.calls.get_mut(call.index as usize) else {
            return;
        };
        row.end_ns = time_ns;
        row.failed = result < 0;
        finish_row(row, call, result);
        row.transaction_status = status(track.replied, row.kind);
        let row = *row;
        self.change(&row, call, pid, result);
        if call.shape.is_bookkeeping() && !waited_in(track, call.index) {
            track.drop_last_call(call.index);
        }
    }

    /// Effect of a call that has ended on files and their numbers.
    fn change(&mut self, row: &Call, call: &Underway, pid: i32, result: i64) {
        if result < 0 {
            return;
        }
        let new = result as i32;
        match call.shape.change {
            Change::Open if call.opened == Some(new) => {
                self.descriptors.set(pid, new, row.file, 0);
            }
            Change::Open => self.descriptors.close(pid, new),
            Change::Create(what) => {
                let file = self.files.intern(&stream_name(what, pid, new));
                self.descriptors.set(pid, new, file, UNKNOWN);
            }
            Change::Duplicate => self.descriptors.duplicate(pid, call.fd(0), new),
            Change::Control if duplicates(call.arguments[1]) => {
                self.descriptors.duplicate(pid, call.fd(0), new);
            }
            Change::Seek => self.move_to(pid, call.fd(0), |_| result as u64),
            Change::None if call.shape.offset == Offset::Position => {
                let moved = row.size_bytes;
                let fd = call.shape.descriptor.map_or(-1, |at| call.fd(at));
                self.move_to(pid, fd, |position| match position {
                    UNKNOWN => UNKNOWN,
                    position => position.saturating_add(moved),
                });
            }
            _ => {}
        }
        if matches!(row.kind, CallKind::Write | CallKind::Resize) {
            self.files.touch(row.file);
        }
    }

    fn move_to(&mut self, pid: i32, fd: i32, position: impl Fn(u64) -> u64) {
        if let Some(open) = self.descriptors.get(pid, fd) {
            open.position = position(open.position);
        }
    }
}

/// A call ends whose entry was before the burst, or is not traced.
pub(super) fn exit_unentered(track: &mut Track, time_ns: u64, number: u32, result: i64) {
    let shape = syscalls::shape(number);
    let (begun_ns, in_call) = if !shape.is_entered() {
        let wait = track.waited.unwrap_or(track.states.len());
        let waited_ns = track.states.get(wait).map(|state| state.start_ns);
        let begun_ns = track.replied.map(|(begun_ns, _)| begun_ns).or(waited_ns);
        (begun_ns.unwrap_or(time_ns), wait)
    } else if !track.acted {
        // All of the thread's activity so far was in it.
        let first_ns = track.states.first().map(|state| state.start_ns);
        (first_ns.unwrap_or(track.since_ns), 0)
    } else {
        return;
    };
    let kind = match shape.kind {
        CallKind::Read if shape.offset == Offset::Position => CallKind::Receive,
        CallKind::Write if shape.offset == Offset::Position => CallKind::Send,
        kind => kind,
    };
    let index = track.calls.len() as u32;
    for state in &mut track.states[in_call..] {
        state.call = index;
    }
    track.calls.push(Call {
        thread: track.thread,
        start_ns: begun_ns,
        end_ns: time_ns,
        kind,
        file: NONE,
        offset_bytes: UNKNOWN,
        size_bytes: if shape.size == Size::Result {
            result.max(0) as u64
        } else {
            0
        },
        asynchronous: false,
        failed: result < 0,
        transaction_status: status(track.replied, kind),
    });
}

/// How the data that a call sent ends; a file that is written has no such status.
fn status(replied: Option<(u64, TransactionStatus)>, kind: CallKind) -> Option<TransactionStatus> {
    let (_, status) = replied.filter(|_| kind == CallKind::Send)?;
    Some(status)
}

fn finish_row(row: &mut Call, call: &Underway, result: i64) {
    row.size_bytes = match call.shape.size {
        Size::None => 0,
        Size::Result => result.max(0) as u64,
        Size::Argument(argument) => call.arguments[argument],
    };
    if syscalls::shortens(call.number) {
        row.offset_bytes = call.arguments[1];
    }
    if syscalls::unlinks(call.number) && row.file != NONE && result == 0 {
        row.kind = CallKind::Resize;
        row.offset_bytes = 0;
    }
}

fn waited_in(track: &Track, call: u32) -> bool {
    track.states.last().is_some_and(|state| state.call == call)
}

/// Whether a command of `fcntl` gives another number for the same file.
fn duplicates(command: u64) -> bool {
    let command = command as i32;
    command == libc::F_DUPFD || command == libc::F_DUPFD_CLOEXEC
}

/// The kernel's name of a stream has a number that is not told; ours tells whose it is.
fn stream_name(what: &str, pid: i32, fd: i32) -> String {
    match what {
        "socket" => format!("socket:[pid {pid} fd {fd}]"),
        what => what.to_owned(),
    }
}
