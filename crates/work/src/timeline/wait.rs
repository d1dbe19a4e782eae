//! Why a thread waited.

use tierwise_recording::{Call, CallKind, NONE, Role, State, ThreadClass};

use crate::index::calls::makes_durable;
use crate::index::rows::Rows;
use crate::log::flushes::LogFlushes;

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
    /// For another's sync of the engine's second log.
    SecondLog,
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
pub(crate) fn wait_cause(rows: &Rows<'_>, flushes: &LogFlushes, state: &State) -> WaitCause {
    if flushes.is_replica(state.waker) && rows.class(state.thread) == Some(ThreadClass::Session) {
        return WaitCause::LogReplica;
    }
    let Some(call) = rows.call(state.call) else {
        // A poll that did not time out is not recorded.
        return match poll(rows, state) {
            WaitCause::Timer => WaitCause::Other,
            cause => cause,
        };
    };
    match call.kind {
        CallKind::Read | CallKind::Await => WaitCause::Read,
        CallKind::Write if rows.role(call.file) == Some(Role::Log) => WaitCause::LogDevice,
        CallKind::Write => WaitCause::Write,
        CallKind::Sync if !makes_durable(call) => WaitCause::Write,
        CallKind::Sync if rows.role(call.file) == Some(Role::Log) => WaitCause::LogDevice,
        CallKind::Sync => WaitCause::Sync,
        CallKind::Sleep => WaitCause::Timer,
        CallKind::Receive | CallKind::Send => talk(rows, state),
        CallKind::Poll => poll(rows, state),
        CallKind::Lock => lock(rows, flushes, state).unwrap_or_else(|| nobodys(rows, state)),
        CallKind::Resize | CallKind::Name | CallKind::Other => WaitCause::Other,
    }
}

/// Whether a thread belongs to the engine.
fn of_engine(rows: &Rows<'_>, thread: u32) -> bool {
    matches!(
        rows.class(thread),
        Some(ThreadClass::Session | ThreadClass::LogWriter | ThreadClass::Background)
    )
}

fn talk(rows: &Rows<'_>, state: &State) -> WaitCause {
    if of_engine(rows, state.waker) {
        WaitCause::Thread
    } else {
        WaitCause::Client
    }
}

fn poll(rows: &Rows<'_>, state: &State) -> WaitCause {
    if of_engine(rows, state.waker) {
        return WaitCause::Thread;
    }
    let of_client = rows.class(state.waker) == Some(ThreadClass::Client);
    if of_client || receives_after(rows, state) || cut_after_reply(rows, state) {
        return WaitCause::Client;
    }
    WaitCause::Timer
}

/// Whether the thread's next communication after a wait is a receive.
fn receives_after(rows: &Rows<'_>, state: &State) -> bool {
    let (_, calls) = rows.calls(state.thread);
    let next = calls.partition_point(|call| call.start_ns < state.end_ns);
    let mut after = calls[next..].iter();
    let next = after.find(|call| with_others(rows, call));
    next.is_some_and(|call| rows.received(call))
}

/// Whether the burst ended first, and the thread's last communication was a send.
fn cut_after_reply(rows: &Rows<'_>, state: &State) -> bool {
    let (_, calls) = rows.calls(state.thread);
    let next = calls.partition_point(|call| call.start_ns < state.start_ns);
    let mut before = calls[..next].iter().rev();
    let last =
        before.find(|call| with_others(rows, call) && call.kind != CallKind::Poll && !call.failed);
    is_cut(rows, state) && last.is_some_and(|call| rows.sent(call))
}

fn with_others(rows: &Rows<'_>, call: &Call) -> bool {
    match call.kind {
        CallKind::Receive | CallKind::Send => !rows.is_kernels(call.file),
        CallKind::Poll | CallKind::Lock | CallKind::Sleep => true,
        _ => false,
    }
}

/// Whether the end of a burst, not the wait's cause, ended a wait.
fn is_cut(rows: &Rows<'_>, state: &State) -> bool {
    let mut bursts = rows.recording.about.bursts.iter();
    bursts.any(|burst| burst.end_ns == state.end_ns)
}

/// A wait that another thread ended: for its flush of the log, or for another resource.
fn lock(rows: &Rows<'_>, flushes: &LogFlushes, state: &State) -> Option<WaitCause> {
    if state.waker == NONE || !of_engine(rows, state.waker) {
        return None;
    }
    if second_log_sync(rows, state).is_some() {
        return Some(WaitCause::SecondLog);
    }
    if rows.class(state.waker) == Some(ThreadClass::LogWriter) && !flushes.all.is_empty() {
        return Some(WaitCause::LogQueue);
    }
    let flush = flushes.that_woke(state.waker, state.start_ns, state.end_ns);
    let covered = flush.is_some_and(|flush| !rows.talked(state.waker, flush.end_ns, state.end_ns));
    Some(if covered {
        WaitCause::LogQueue
    } else {
        WaitCause::Thread
    })
}

/// The sync of the engine's second log that ended a wait: the waker's, while the thread waited.
pub(crate) fn second_log_sync<'a>(rows: &Rows<'a>, state: &State) -> Option<&'a Call> {
    let role = rows.engine.second_log?;
    if !of_engine(rows, state.waker) {
        return None;
    }
    let (_, calls) = rows.calls(state.waker);
    let until = calls.partition_point(|call| call.start_ns < state.end_ns);
    let mut before = calls[..until].iter().rev();
    let last = before.find(|call| makes_durable(call) && rows.role(call.file) == Some(role))?;
    let meanwhile = (state.start_ns..=state.end_ns).contains(&last.end_ns);
    (meanwhile && !rows.talked(state.waker, last.end_ns, state.end_ns)).then_some(last)
}

/// A wait for another thread that no thread ended: it timed out, as in polling (DuckDB's `PendingQuery`, 20
/// ms at a time). Not if the burst ended first.
fn nobodys(rows: &Rows<'_>, state: &State) -> WaitCause {
    if state.waker == NONE && !is_cut(rows, state) {
        WaitCause::Timer
    } else {
        WaitCause::Other
    }
}
