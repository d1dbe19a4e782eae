//! System calls from their entry to their exit.

use tierwise_recording::{Call, CallKind, NONE, TransactionStatus, UNKNOWN};

use super::files::{DescriptorTables, SeenFiles};
use super::syscalls::{self, CallOffset, CallShape, CallSize, DescriptorChange};
use super::thread_track::{CallUnderWay, ThreadTrack};

/// The files and numbers of all processes, which calls use and change.
#[derive(Debug, Default)]
pub(super) struct ProcessFileTables {
    pub files: SeenFiles,
    pub descriptors: DescriptorTables,
}

impl ProcessFileTables {
    /// A call begins: its row, not yet ended, as far as its arguments tell.
    pub(super) fn enter(
        &mut self,
        track: &mut ThreadTrack,
        pid: i32,
        time_ns: u64,
        number: u32,
        arguments: [u64; 4],
    ) {
        let mut call = CallUnderWay {
            number,
            arguments,
            shape: syscalls::call_shape(number),
            index: track.calls.len() as u32,
            opened: None,
        };
        let descriptor = call.shape.descriptor.map(|argument| call.fd(argument));
        let known = descriptor.and_then(|fd| self.descriptors.get(pid, fd).copied());
        let file = known.map_or(NONE, |known| known.file);
        call.shape.kind = self.kind_of(&call.shape, file);
        track.calls.push(Call {
            file,
            offset_bytes: match call.shape.offset {
                CallOffset::None => UNKNOWN,
                CallOffset::Argument(argument) => arguments[argument],
                CallOffset::Position => known.map_or(UNKNOWN, |known| known.position),
            },
            ..begun_call(time_ns, track.thread, call.shape.kind)
        });
        track.underway = Some(call);
        // Numbers are free as soon as a close begins: another thread may get them before it ends.
        match call.shape.change {
            DescriptorChange::Close => self.descriptors.close(pid, call.fd(0)),
            DescriptorChange::CloseRange => {
                self.descriptors
                    .close_range(pid, arguments[0], arguments[1])
            }
            _ => {}
        }
    }

    /// Every open of a file is known, so a number that is not known is a pipe or the like, unless the call
    /// takes an offset.
    fn kind_of(&self, shape: &CallShape, file: u32) -> CallKind {
        match shape.offset {
            CallOffset::Position if self.files.is_stream(file) => stream_call_kind(shape.kind),
            _ => shape.kind,
        }
    }

    /// The tracer tells the path of the file that a call under way opens, or names if the number is negative.
    pub(super) fn opened(&mut self, track: &mut ThreadTrack, pid: i32, fd: i32, path: &str) {
        match &mut track.underway {
            Some(call) => {
                let file = self.files.intern(path);
                if let Some(row) = track.calls.get_mut(call.index as usize) {
                    row.file = file;
                }
                call.opened = Some(fd);
            }
            None if fd >= 0 => {
                let file = self.files.intern(path);
                self.descriptors.set(pid, fd, file, UNKNOWN);
            }
            None => {}
        }
    }

    pub(super) fn exit(
        &mut self,
        track: &mut ThreadTrack,
        pid: i32,
        time_ns: u64,
        number: u32,
        result: i64,
    ) {
        let Some(call) = track.underway.take() else {
            return exit_call_without_entry(track, time_ns, number, result);
        };
        let Some(row) = track.calls.get_mut(call.index as usize) else {
            return;
        };
        row.end_ns = time_ns;
        row.failed = result < 0;
        row.size_bytes = match call.shape.size {
            CallSize::None => 0,
            CallSize::Result => result.max(0) as u64,
            CallSize::Argument(argument) => call.arguments[argument],
        };
        if syscalls::sets_file_length(number) {
            row.offset_bytes = call.arguments[1];
        }
        if syscalls::removes_name(number) && row.file != NONE && result == 0 {
            row.kind = CallKind::Resize;
            row.offset_bytes = 0;
        }
        row.transaction_status = call_reply_status(track.replied, row.kind);
        let row = *row;
        self.change(&row, &call, pid, result);
        let waited = (track.states.last()).is_some_and(|state| state.call == call.index);
        if call.shape.is_bookkeeping() && !waited {
            track.drop_last_call(call.index);
        }
    }

    /// Effect of a call that has ended on files and their numbers.
    fn change(&mut self, row: &Call, call: &CallUnderWay, pid: i32, result: i64) {
        if result < 0 {
            return;
        }
        let new = result as i32;
        match call.shape.change {
            DescriptorChange::Open if call.opened == Some(new) => {
                self.descriptors.set(pid, new, row.file, 0);
            }
            DescriptorChange::Open => self.descriptors.close(pid, new),
            DescriptorChange::Create(what) => {
                // The kernel's name of a socket has a number that is not recorded; ours says whose it is.
                let file = match what {
                    "socket" => self.files.intern(&format!("socket:[pid {pid} fd {new}]")),
                    what => self.files.intern(what),
                };
                self.descriptors.set(pid, new, file, UNKNOWN);
            }
            DescriptorChange::Duplicate => self.descriptors.duplicate(pid, call.fd(0), new),
            DescriptorChange::Control if fcntl_duplicates(call.arguments[1]) => {
                self.descriptors.duplicate(pid, call.fd(0), new);
            }
            DescriptorChange::Seek => {
                if let Some(open) = self.descriptors.get(pid, call.fd(0)) {
                    open.position = result as u64;
                }
            }
            DescriptorChange::None if call.shape.offset == CallOffset::Position => {
                let fd = call.shape.descriptor.map_or(-1, |at| call.fd(at));
                if let Some(open) = self.descriptors.get(pid, fd)
                    && open.position != UNKNOWN
                {
                    open.position = open.position.saturating_add(row.size_bytes);
                }
            }
            _ => {}
        }
        self.files.touch(row.file, row.kind);
    }
}

/// A call whose entry was before the burst, or is not traced, ends.
fn exit_call_without_entry(track: &mut ThreadTrack, time_ns: u64, number: u32, result: i64) {
    let shape = syscalls::call_shape(number);
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
    let kind = match shape.offset {
        CallOffset::Position => stream_call_kind(shape.kind),
        _ => shape.kind,
    };
    let index = track.calls.len() as u32;
    for state in &mut track.states[in_call..] {
        state.call = index;
    }
    track.calls.push(Call {
        end_ns: time_ns,
        size_bytes: match shape.size {
            CallSize::Result => result.max(0) as u64,
            _ => 0,
        },
        failed: result < 0,
        transaction_status: call_reply_status(track.replied, kind),
        ..begun_call(begun_ns, track.thread, kind)
    });
}

/// A call of which only its begin is known.
pub(super) fn begun_call(start_ns: u64, thread: u32, kind: CallKind) -> Call {
    Call {
        thread,
        start_ns,
        end_ns: start_ns,
        kind,
        file: NONE,
        offset_bytes: UNKNOWN,
        size_bytes: 0,
        asynchronous: false,
        failed: false,
        transaction_status: None,
    }
}

/// What a call does whose bytes are exchanged with a peer rather than a file.
fn stream_call_kind(kind: CallKind) -> CallKind {
    match kind {
        CallKind::Read => CallKind::Receive,
        CallKind::Write => CallKind::Send,
        kind => kind,
    }
}

/// How the data that a call sent ends; a file that is written has no such status.
fn call_reply_status(
    replied: Option<(u64, TransactionStatus)>,
    kind: CallKind,
) -> Option<TransactionStatus> {
    let (_, status) = replied.filter(|_| kind == CallKind::Send)?;
    Some(status)
}

/// Whether a command of `fcntl` gives another number for the same file.
fn fcntl_duplicates(command: u64) -> bool {
    let command = command as i32;
    command == libc::F_DUPFD || command == libc::F_DUPFD_CLOEXEC
}
