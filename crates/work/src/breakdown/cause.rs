//! What a thread waited for.

use std::collections::HashMap;

use tierwise_recording::{
    Block, BlockOp, Call, CallKind, NONE, Recording, Role, State, StateKind, ThreadClass,
};

use super::TimeCategory;

/// After its flush of the log a thread first wakes those that waited for that, one call after the other, and
/// then lets go of what else it held. Measured with PostgreSQL 18, on a core: 1 to 12 µs to the first such call,
/// 0.4 to 1 µs between them. The woken often take the core in between, so only time on the core counts.
const FIRST_WAKING_NS: u64 = 20_000;
/// See [`FIRST_WAKING_NS`].
const NEXT_WAKING_NS: u64 = 8_000;

/// Asynchronous calls of one thread that can be under way together.
const MOST_UNDERWAY: usize = 256;

/// A flush of the log by one thread, and the wakings after it.
#[derive(Clone, Copy, Debug)]
struct Flush {
    end_ns: u64,
    /// When the last of those was woken that waited for it.
    woken_ns: u64,
    file: u32,
}

/// What some time went to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cause {
    pub category: TimeCategory,
    pub role: Option<Role>,
    /// Index of the file, or [`NONE`].
    pub file: u32,
}

impl Cause {
    fn of(category: TimeCategory) -> Self {
        Self {
            category,
            role: None,
            file: NONE,
        }
    }
}

/// All that is needed to say so.
pub(super) struct Causes<'a> {
    recording: &'a Recording,
    /// Each thread's flushes of the log, in order.
    flushes: HashMap<u32, Vec<Flush>>,
    /// States of each thread, in order.
    states: HashMap<u32, &'a [State]>,
    /// Reads from devices that each thread made itself, in order.
    reads: HashMap<u32, Vec<&'a Block>>,
    /// Asynchronous calls of each thread, in order.
    submitted: HashMap<u32, Vec<&'a Call>>,
}

impl<'a> Causes<'a> {
    pub(super) fn new(recording: &'a Recording) -> Self {
        let mut causes = Self {
            recording,
            flushes: HashMap::new(),
            states: by_thread(&recording.states),
            reads: HashMap::new(),
            submitted: HashMap::new(),
        };
        for call in &recording.calls {
            causes.note(call);
        }
        for block in &recording.blocks {
            if block.op == BlockOp::Read && block.thread != NONE {
                causes.reads.entry(block.thread).or_default().push(block);
            }
        }
        causes
    }

    fn note(&mut self, call: &'a Call) {
        if call.asynchronous {
            self.submitted.entry(call.thread).or_default().push(call);
        } else if call.kind == CallKind::Sync && self.role(call.file) == Some(Role::Log) {
            self.flushes.entry(call.thread).or_default().push(Flush {
                end_ns: call.end_ns,
                woken_ns: call.end_ns,
                file: call.file,
            });
        } else if call.kind == CallKind::Lock {
            self.note_waking(call);
        }
    }

    /// A call that may wake others: one more of the chain after a flush, if it follows closely.
    fn note_waking(&mut self, call: &Call) {
        let Some(flush) = self.flushes.get(&call.thread).and_then(|all| all.last()) else {
            return;
        };
        let first = flush.woken_ns == flush.end_ns;
        let bound = if first {
            FIRST_WAKING_NS
        } else {
            NEXT_WAKING_NS
        };
        if self.on_core_ns(call.thread, flush.woken_ns, call.start_ns) <= bound
            && let Some(flush) = self
                .flushes
                .get_mut(&call.thread)
                .and_then(|all| all.last_mut())
        {
            flush.woken_ns = call.end_ns;
        }
    }

    /// Time that a thread was on a core between two instants.
    fn on_core_ns(&self, thread: u32, from_ns: u64, to_ns: u64) -> u64 {
        let states = self.states.get(&thread).copied().unwrap_or_default();
        let first = states.partition_point(|state| state.end_ns <= from_ns);
        let within = states[first..]
            .iter()
            .take_while(|state| state.start_ns < to_ns);
        within
            .filter(|state| state.kind == StateKind::Cpu)
            .map(|state| state.end_ns.min(to_ns) - state.start_ns.max(from_ns))
            .sum()
    }

    fn role(&self, file: u32) -> Option<Role> {
        self.recording.files.get(file as usize)?.role
    }

    fn class(&self, thread: u32) -> Option<ThreadClass> {
        let thread = self.recording.threads.get(thread as usize)?;
        Some(thread.class)
    }

    /// What a state's time went to.
    pub(super) fn of(&self, state: &State) -> Cause {
        match state.kind {
            StateKind::Cpu => Cause::of(TimeCategory::Cpu),
            StateKind::Runnable => Cause::of(TimeCategory::Runnable),
            StateKind::Blocked => match self.recording.calls.get(state.call as usize) {
                Some(call) => self.in_call(state, call),
                None => self.outside(state),
            },
        }
    }

    fn in_call(&self, state: &State, call: &Call) -> Cause {
        let session = self.class(state.thread) == Some(ThreadClass::Session);
        let client = self.class(state.thread) == Some(ThreadClass::Client);
        match call.kind {
            CallKind::Read => self.of_file(TimeCategory::Read, call.file),
            CallKind::Write | CallKind::Sync | CallKind::Resize => match self.role(call.file) {
                Some(Role::Log) => self.of_file(TimeCategory::LogDevice, call.file),
                _ => self.of_file(TimeCategory::Write, call.file),
            },
            CallKind::Await => self.awaited(state),
            CallKind::Sleep => Cause::of(TimeCategory::Sleep),
            _ if client => Cause::of(TimeCategory::Client),
            CallKind::Receive | CallKind::Send | CallKind::Poll if session => self.spoken(state),
            CallKind::Receive | CallKind::Poll => Cause::of(TimeCategory::Sleep),
            CallKind::Send => Cause::of(TimeCategory::Client),
            CallKind::Lock => self.handed(state, session),
            CallKind::Name | CallKind::Other => Cause::of(TimeCategory::Other),
        }
    }

    fn of_file(&self, category: TimeCategory, file: u32) -> Cause {
        Cause {
            category,
            role: self.role(file),
            file,
        }
    }

    /// A session in a call on sockets waits for its client, unless a thread of the server woke it.
    fn spoken(&self, state: &State) -> Cause {
        match self.class(state.waker) {
            Some(ThreadClass::Session | ThreadClass::LogWriter | ThreadClass::Background) => {
                self.handed(state, true)
            }
            _ => Cause::of(TimeCategory::Client),
        }
    }

    /// A wait that another thread ended: by its flush of the log, or by letting go of something else. Without
    /// such a thread it was for a time, or for work.
    fn handed(&self, state: &State, session: bool) -> Cause {
        if state.waker == NONE {
            let category = if session {
                TimeCategory::Lock
            } else {
                TimeCategory::Sleep
            };
            return Cause::of(category);
        }
        if let Some(file) = self.flushed_by(state.waker, state.end_ns) {
            return self.of_file(TimeCategory::LogQueue, file);
        }
        Cause::of(if session {
            TimeCategory::Lock
        } else {
            TimeCategory::Sleep
        })
    }

    /// The file of the log whose flush by `thread` a waking at this time was for.
    fn flushed_by(&self, thread: u32, time_ns: u64) -> Option<u32> {
        let flushes = self.flushes.get(&thread)?;
        let after = flushes.partition_point(|flush| flush.end_ns <= time_ns);
        let flush = flushes.get(after.checked_sub(1)?)?;
        (time_ns <= flush.woken_ns).then_some(flush.file)
    }

    /// A wait for asynchronous calls: for that one under way which is the first to be done. It may be told as
    /// done a little after the waking, by the woken thread itself.
    fn awaited(&self, state: &State) -> Cause {
        let calls = self.submitted.get(&state.thread);
        let before = calls.map_or(&[][..], |calls| {
            &calls[..calls.partition_point(|call| call.start_ns <= state.end_ns)]
        });
        let recent = before.iter().rev().take(MOST_UNDERWAY);
        let ended = recent
            .filter(|call| call.file != NONE && call.end_ns >= state.start_ns)
            .min_by_key(|call| call.end_ns);
        match ended {
            Some(call) if call.kind == CallKind::Read => {
                self.of_file(TimeCategory::Read, call.file)
            }
            Some(call) if self.role(call.file) == Some(Role::Log) => {
                self.of_file(TimeCategory::LogDevice, call.file)
            }
            Some(call) => self.of_file(TimeCategory::Write, call.file),
            None => Cause::of(TimeCategory::Sleep),
        }
    }

    /// A wait outside of any call is a page fault; its read, if it made one, tells the file. The calls of
    /// clients and of the kernel's threads are not traced.
    fn outside(&self, state: &State) -> Cause {
        let read = self.reads.get(&state.thread).and_then(|reads| {
            let after = reads.partition_point(|read| read.issued_ns <= state.end_ns);
            reads[..after]
                .last()
                .filter(|read| read.completed_ns > state.start_ns)
        });
        match read {
            Some(read) => self.of_file(TimeCategory::Read, read.file),
            None => Cause::of(match self.class(state.thread) {
                Some(ThreadClass::Client) => TimeCategory::Client,
                Some(ThreadClass::Kernel) => TimeCategory::Sleep,
                _ => TimeCategory::Other,
            }),
        }
    }
}

fn by_thread(states: &[State]) -> HashMap<u32, &[State]> {
    let threads = states.chunk_by(|a, b| a.thread == b.thread);
    threads.map(|states| (states[0].thread, states)).collect()
}
