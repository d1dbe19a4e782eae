//! The time of one thread, with each segment classified once: on a core, ready, or waiting with a cause.
//!
//! Nothing here compares threads or depends on transactions.

mod coldness;

use tierwise_recording::{Call, CallKind, NONE, Role, State, StateKind, ThreadClass};

use crate::TimeCategory;
use crate::recording_rows::{RecordingRows, makes_durable};
use crate::recording_view::RecordingView;

pub use coldness::ColdCoreCost;
pub(crate) use coldness::mean_cold_factor;

// One thread's time in one burst as segments in order: on a core, ready, waiting, and the calls between them.

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ThreadSegmentKind<'a> {
    /// On a core; whether off any core just before.
    Cpu {
        waited: bool,
    },
    Ready,
    Wait {
        cause: WaitCause,
        state: &'a State,
    },
    /// A call begins here; its row in the recording.
    Call {
        row: u32,
        call: &'a Call,
    },
}

/// A segment; a call's is empty, its time is in the segments that follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ThreadSegment<'a> {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) kind: ThreadSegmentKind<'a>,
}

impl<'a> ThreadSegment<'a> {
    fn new(start_ns: u64, end_ns: u64, kind: ThreadSegmentKind<'a>) -> Self {
        Self {
            start_ns,
            end_ns,
            kind,
        }
    }

    pub(crate) fn time_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    pub(crate) fn call(&self) -> Option<&'a Call> {
        match self.kind {
            ThreadSegmentKind::Call { call, .. } => Some(call),
            _ => None,
        }
    }

    /// The cause of a wait, and its state.
    pub(crate) fn wait(&self) -> Option<(WaitCause, &'a State)> {
        match self.kind {
            ThreadSegmentKind::Wait { cause, state } => Some((cause, state)),
            _ => None,
        }
    }

    pub(crate) fn waits_for(&self, what: WaitCause) -> bool {
        self.wait().is_some_and(|(cause, _)| cause == what)
    }
}

/// Time on a core in some segments.
pub(crate) fn segments_cpu_ns(segments: &[ThreadSegment<'_>]) -> u64 {
    let on_core = |segment: &&ThreadSegment| matches!(segment.kind, ThreadSegmentKind::Cpu { .. });
    segments
        .iter()
        .filter(on_core)
        .map(ThreadSegment::time_ns)
        .sum()
}

/// The segments of a thread in each burst, with the burst's number.
pub(crate) fn thread_segments<'a>(
    view: &RecordingView<'a>,
    thread: u32,
) -> Vec<(u32, Vec<ThreadSegment<'a>>)> {
    let (states, calls) = (view.states(thread), view.calls(thread));
    let mut found = Vec::new();
    for (number, burst) in (0..).zip(&view.recording.about.bursts) {
        let from = states.partition_point(|state| state.end_ns <= burst.start_ns);
        let inside = |state: &State| state.start_ns < burst.end_ns;
        let to = from + states[from..].partition_point(inside);
        if from == to {
            continue;
        }
        let first = calls.partition_point(|call| call.start_ns < burst.start_ns);
        let last = calls.partition_point(|call| call.start_ns < burst.end_ns);
        let row = view.first_call(thread) + first as u32;
        let calls = (row..).zip(&calls[first..last.max(first)]);
        found.push((
            number,
            merge_states_and_calls(view, &states[from..to], calls),
        ));
    }
    found
}

/// Merges states and calls by time.
fn merge_states_and_calls<'a>(
    view: &RecordingView<'a>,
    states: &'a [State],
    calls: impl Iterator<Item = (u32, &'a Call)>,
) -> Vec<ThreadSegment<'a>> {
    let mut segments = Vec::with_capacity(states.len());
    let mut calls = calls.peekable();
    let begins = |time_ns: u64, (row, call): (u32, &'a Call)| {
        ThreadSegment::new(time_ns, time_ns, ThreadSegmentKind::Call { row, call })
    };
    let mut was_off_core = false;
    for state in states {
        let (mut from_ns, end_ns) = (state.start_ns, state.end_ns);
        let mut on_core = |from_ns: u64, to_ns: u64| {
            (to_ns > from_ns).then(|| {
                let waited = std::mem::take(&mut was_off_core);
                ThreadSegment::new(from_ns, to_ns, ThreadSegmentKind::Cpu { waited })
            })
        };
        match state.kind {
            StateKind::Cpu => {
                while let Some(next) = calls.next_if(|(_, call)| call.start_ns < end_ns) {
                    let call_ns = next.1.start_ns.max(from_ns);
                    segments.extend(on_core(from_ns, call_ns));
                    segments.push(begins(call_ns, next));
                    from_ns = call_ns;
                }
                segments.extend(on_core(from_ns, end_ns));
            }
            StateKind::Runnable => segments.push(ThreadSegment::new(
                from_ns,
                end_ns,
                ThreadSegmentKind::Ready,
            )),
            StateKind::Blocked => {
                while let Some(next) = calls.next_if(|(_, call)| call.start_ns <= from_ns) {
                    segments.push(begins(next.1.start_ns, next));
                }
                let cause = wait_cause(view, state);
                let wait = ThreadSegmentKind::Wait { cause, state };
                segments.push(ThreadSegment::new(from_ns, end_ns, wait));
            }
        }
        was_off_core |= state.kind != StateKind::Cpu;
    }
    segments.extend(calls.map(|next| begins(next.1.start_ns, next)));
    segments
}

/// Pieces of segments; those on a core are split at any of the given instants, which are sorted.
pub(crate) fn split_segments_at<'a>(
    segments: Vec<ThreadSegment<'a>>,
    instants: &[u64],
) -> Vec<ThreadSegment<'a>> {
    let mut cut = Vec::with_capacity(segments.len() + instants.len());
    let mut instants = instants.iter().copied().peekable();
    for mut rest in segments {
        while instants.next_if(|&at_ns| at_ns <= rest.start_ns).is_some() {}
        while let Some(at_ns) = instants.next_if(|&at_ns| at_ns < rest.end_ns) {
            if let ThreadSegmentKind::Cpu { .. } = rest.kind {
                cut.push(ThreadSegment {
                    end_ns: at_ns,
                    ..rest
                });
                rest.kind = ThreadSegmentKind::Cpu { waited: false };
                rest.start_ns = at_ns;
            }
        }
        cut.push(rest);
    }
    cut
}

// Why a thread waited, and for which file.

/// Number of preceding calls in which a wait for asynchronous calls looks for its call.
const MOST_CALLS: usize = 1024;

/// Why a thread waited. Only [`WaitCause::Client`] and [`WaitCause::Timer`] are part of the work; replay
/// recomputes all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitCause {
    /// For the next request.
    Client,
    /// For the log's device, in its own flush.
    LogDevice,
    /// For another's flush of the log.
    LogQueue,
    /// For a second copy of the log to be durable.
    LogReplica,
    /// For another's sync of the engine's second log: that call's row.
    SecondLog(u32),
    /// For another thread of the engine.
    Thread,
    /// For pages.
    Read,
    /// For the write lock.
    Write,
    /// For files other than the log to be durable.
    Sync,
    /// For time to pass.
    Timer,
    /// Unknown.
    Other,
}

/// Classifies one blocked state.
pub(crate) fn wait_cause(view: &RecordingView<'_>, state: &State) -> WaitCause {
    let by_replica = view.flushes.is_replica(state.waker);
    if by_replica && view.class(state.thread) == Some(ThreadClass::Session) {
        return WaitCause::LogReplica;
    }
    let by_engine = view.is_engines(state.waker);
    let Some(call) = view.call(state.call) else {
        // A poll that did not time out is not recorded.
        return match poll_wait_cause(view, state) {
            WaitCause::Timer => WaitCause::Other,
            cause => cause,
        };
    };
    let of_log = view.role(call.file) == Some(Role::Log);
    match call.kind {
        CallKind::Read | CallKind::Await => WaitCause::Read,
        CallKind::Sync if !makes_durable(call) => WaitCause::Write,
        CallKind::Write | CallKind::Sync if of_log => WaitCause::LogDevice,
        CallKind::Write => WaitCause::Write,
        CallKind::Sync => WaitCause::Sync,
        CallKind::Sleep => WaitCause::Timer,
        CallKind::Receive | CallKind::Send if by_engine => WaitCause::Thread,
        CallKind::Receive | CallKind::Send => WaitCause::Client,
        CallKind::Poll => poll_wait_cause(view, state),
        CallKind::Lock if by_engine => lock_wait_cause(view, state),
        // Nobody ended it: it timed out, as in polling (DuckDB's `PendingQuery`, 20 ms at a time), unless the
        // burst ended first.
        CallKind::Lock if state.waker == NONE && !ended_with_burst(view, state) => WaitCause::Timer,
        CallKind::Lock | CallKind::Resize | CallKind::Name | CallKind::Other => WaitCause::Other,
    }
}

fn poll_wait_cause(rows: &RecordingRows<'_>, state: &State) -> WaitCause {
    if rows.is_engines(state.waker) {
        return WaitCause::Thread;
    }
    let of_client = rows.class(state.waker) == Some(ThreadClass::Client);
    match of_client || receives_after_wait(rows, state) || burst_cut_after_reply(rows, state) {
        true => WaitCause::Client,
        false => WaitCause::Timer,
    }
}

/// Whether the thread's next communication after a wait is a receive.
fn receives_after_wait(rows: &RecordingRows<'_>, state: &State) -> bool {
    let calls = rows.calls(state.thread);
    let next = calls.partition_point(|call| call.start_ns < state.end_ns);
    let mut after = calls[next..].iter();
    let next = after.find(|call| wait_among_threads(rows, call));
    next.is_some_and(|call| rows.received(call))
}

/// Whether the burst ended first, and the thread's last communication was a send.
fn burst_cut_after_reply(rows: &RecordingRows<'_>, state: &State) -> bool {
    if !ended_with_burst(rows, state) {
        return false;
    }
    let calls = rows.calls(state.thread);
    let next = calls.partition_point(|call| call.start_ns < state.start_ns);
    let mut before = calls[..next].iter().rev();
    let last = before
        .find(|call| wait_among_threads(rows, call) && call.kind != CallKind::Poll && !call.failed);
    last.is_some_and(|call| rows.sent(call))
}

fn wait_among_threads(rows: &RecordingRows<'_>, call: &Call) -> bool {
    match call.kind {
        CallKind::Receive | CallKind::Send => !rows.is_kernels(call.file),
        CallKind::Poll | CallKind::Lock | CallKind::Sleep => true,
        _ => false,
    }
}

/// Whether the end of a burst, not the wait's cause, ended a wait.
fn ended_with_burst(rows: &RecordingRows<'_>, state: &State) -> bool {
    let mut bursts = rows.recording.about.bursts.iter();
    bursts.any(|burst| burst.end_ns == state.end_ns)
}

/// A wait that another thread ended: for its flush of the log, or for another resource.
fn lock_wait_cause(view: &RecordingView<'_>, state: &State) -> WaitCause {
    if let Some(sync) = second_log_sync(view, state) {
        return WaitCause::SecondLog(sync);
    }
    let flushes = &view.flushes;
    let by_writer = view.class(state.waker) == Some(ThreadClass::LogWriter);
    let covered = (by_writer && !flushes.all.is_empty())
        || flushes
            .that_woke(state)
            .is_some_and(|flush| !view.talked(state.waker, flush.end_ns, state.end_ns));
    match covered {
        true => WaitCause::LogQueue,
        false => WaitCause::Thread,
    }
}

/// The row of the sync of the engine's second log that ended a wait: the waker's, while the thread waited.
fn second_log_sync(rows: &RecordingRows<'_>, state: &State) -> Option<u32> {
    let role = rows.engine.second_log?;
    let calls = rows.calls(state.waker);
    let until = calls.partition_point(|call| call.start_ns < state.end_ns);
    let mut before = calls[..until].iter();
    let last =
        before.rposition(|call| makes_durable(call) && rows.role(call.file) == Some(role))?;
    let done_ns = calls[last].end_ns;
    let meanwhile = (state.start_ns..=state.end_ns).contains(&done_ns);
    let ended = meanwhile && !rows.talked(state.waker, done_ns, state.end_ns);
    ended.then_some(rows.first_call(state.waker) + last as u32)
}

/// Use of a thread's time: a category, and the index of the file that it waited for, or [`NONE`].
pub(crate) type ThreadTimeUse = (TimeCategory, u32);

/// Use of a state of a thread.
pub(crate) fn state_time_use(view: &RecordingView<'_>, state: &State) -> ThreadTimeUse {
    match state.kind {
        StateKind::Cpu => (TimeCategory::Cpu, NONE),
        StateKind::Runnable => (TimeCategory::Runnable, NONE),
        StateKind::Blocked => wait_time_use(view, state, wait_cause(view, state)),
    }
}

/// Use of a wait whose cause is known.
pub(crate) fn wait_time_use(
    view: &RecordingView<'_>,
    state: &State,
    cause: WaitCause,
) -> ThreadTimeUse {
    if let Some(of_file) = file_wait_use(view, state, cause) {
        return of_file;
    }
    let category = category_without_file(view, state, cause);
    let flush = view.flushes.last_of(state.waker, state.end_ns);
    let flush = flush.filter(|_| category == TimeCategory::LogQueue);
    (category, flush.map_or(NONE, |flush| flush.file))
}

/// The role of the file that was waited for.
pub(crate) fn role_of_use(
    rows: &RecordingRows<'_>,
    (category, file): ThreadTimeUse,
) -> Option<Role> {
    match category {
        TimeCategory::LogDevice | TimeCategory::LogQueue => Some(Role::Log),
        _ => rows.role(file),
    }
}

/// A wait of the thread itself for a file: in a call on it, for an asynchronous call, or in a page fault.
fn file_wait_use(
    rows: &RecordingRows<'_>,
    state: &State,
    cause: WaitCause,
) -> Option<ThreadTimeUse> {
    let call = rows.call(state.call);
    match (cause, call.map(|call| call.kind)) {
        (WaitCause::Read, Some(CallKind::Await)) => awaited_call(rows, state),
        (WaitCause::Read, _) => call.map(|call| (TimeCategory::Read, call.file)),
        (WaitCause::LogDevice | WaitCause::Write | WaitCause::Sync, _)
        | (WaitCause::Other, Some(CallKind::Resize)) => {
            call.map(|call| file_category(rows, call.file))
        }
        (WaitCause::Other, None) => {
            let read = rows.fault_reads(state).last().copied();
            read.map(|block| (TimeCategory::Read, block.file))
        }
        _ => None,
    }
}

fn file_category(rows: &RecordingRows<'_>, file: u32) -> ThreadTimeUse {
    match rows.role(file) {
        Some(Role::Log) => (TimeCategory::LogDevice, file),
        _ => (TimeCategory::Write, file),
    }
}

/// The asynchronous call under way that completes first. The woken thread itself may report the completion, a
/// little after the wakeup.
fn awaited_call(rows: &RecordingRows<'_>, state: &State) -> Option<ThreadTimeUse> {
    let calls = rows.calls(state.thread);
    let before = calls.partition_point(|call| call.start_ns <= state.end_ns);
    let recent = calls[..before].iter().rev().take(MOST_CALLS);
    let under_way = recent
        .filter(|call| call.asynchronous && call.file != NONE && call.end_ns >= state.start_ns);
    let call = under_way.min_by_key(|call| call.end_ns)?;
    Some(match call.kind {
        CallKind::Read => (TimeCategory::Read, call.file),
        _ => file_category(rows, call.file),
    })
}

/// Use of a wait for no file of its own. Clients wait for their server; the other threads outside sessions
/// wait for time or for work where no flush of the log is named.
fn category_without_file(
    rows: &RecordingRows<'_>,
    state: &State,
    cause: WaitCause,
) -> TimeCategory {
    let call = rows.call(state.call);
    let sleeps = call.is_some_and(|call| call.kind == CallKind::Sleep);
    match (rows.class(state.thread), cause) {
        (Some(ThreadClass::Client), _) if sleeps => TimeCategory::Sleep,
        (Some(ThreadClass::Client), _) => TimeCategory::Client,
        (Some(ThreadClass::Kernel), _) => TimeCategory::Sleep,
        (_, WaitCause::LogQueue | WaitCause::LogReplica | WaitCause::SecondLog(_)) => {
            TimeCategory::LogQueue
        }
        (Some(ThreadClass::Session), WaitCause::Client) => TimeCategory::Client,
        (Some(ThreadClass::Session), WaitCause::Thread) => TimeCategory::Lock,
        (Some(ThreadClass::Session), WaitCause::Read) => TimeCategory::Read,
        (_, WaitCause::Other) => TimeCategory::Other,
        _ => TimeCategory::Sleep,
    }
}
