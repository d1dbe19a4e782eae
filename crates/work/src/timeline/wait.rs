//! Why a thread waited.

use tierwise_recording::{Call, CallKind, NONE, Role, State, ThreadClass};

use crate::index::calls::{makes_durable, received, sent};
use crate::index::view::View;
use crate::log::flushes::LogFlushes;

/// Why a thread waited. Only [`WaitCause::Client`] and [`WaitCause::Timer`] are part of the work; all else is
/// recomputed.
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
    /// For another thread of the engine.
    Thread,
    /// For pages.
    Read,
    /// To be allowed to write.
    Write,
    /// For files other than the log to be durable.
    Sync,
    /// For time to pass.
    Timer,
    /// Not known.
    Other,
}

/// Classifies one blocked state.
pub(crate) fn wait_cause(view: &View<'_>, flushes: &LogFlushes, state: &State) -> WaitCause {
    if flushes.is_replica(state.waker) && view.class(state.thread) == Some(ThreadClass::Session) {
        return WaitCause::LogReplica;
    }
    let Some(call) = view.call(state.call) else {
        return lock(view, flushes, state).unwrap_or(WaitCause::Other);
    };
    match call.kind {
        CallKind::Read | CallKind::Await => WaitCause::Read,
        CallKind::Write if view.role(call.file) == Some(Role::Log) => WaitCause::LogDevice,
        CallKind::Write => WaitCause::Write,
        CallKind::Sync if !makes_durable(call) => WaitCause::Write,
        CallKind::Sync if view.role(call.file) == Some(Role::Log) => WaitCause::LogDevice,
        CallKind::Sync => WaitCause::Sync,
        CallKind::Sleep => WaitCause::Timer,
        CallKind::Receive | CallKind::Send => talk(view, state),
        CallKind::Poll => poll(view, state),
        CallKind::Lock => lock(view, flushes, state).unwrap_or_else(|| nobodys(view, state)),
        CallKind::Resize | CallKind::Name | CallKind::Other => WaitCause::Other,
    }
}

/// Whether a thread belongs to the engine.
fn of_engine(view: &View<'_>, thread: u32) -> bool {
    matches!(
        view.class(thread),
        Some(ThreadClass::Session | ThreadClass::LogWriter | ThreadClass::Background)
    )
}

fn talk(view: &View<'_>, state: &State) -> WaitCause {
    if of_engine(view, state.waker) {
        WaitCause::Thread
    } else {
        WaitCause::Client
    }
}

fn poll(view: &View<'_>, state: &State) -> WaitCause {
    if of_engine(view, state.waker) {
        return WaitCause::Thread;
    }
    let of_client = view.class(state.waker) == Some(ThreadClass::Client);
    if of_client || receives_after(view, state) || cut_after_reply(view, state) {
        return WaitCause::Client;
    }
    WaitCause::Timer
}

/// Whether the next that a thread does with others, after a wait, is to receive something.
fn receives_after(view: &View<'_>, state: &State) -> bool {
    let (_, calls) = view.calls(state.thread);
    let next = calls.partition_point(|call| call.start_ns < state.end_ns);
    calls[next..].iter().find(with_others).is_some_and(received)
}

/// Whether the burst was over first, and what the thread did last with others was to send something.
fn cut_after_reply(view: &View<'_>, state: &State) -> bool {
    let (_, calls) = view.calls(state.thread);
    let next = calls.partition_point(|call| call.start_ns < state.start_ns);
    let mut before = calls[..next].iter().rev();
    let last = before.find(|call| with_others(call) && call.kind != CallKind::Poll && !call.failed);
    is_cut(view, state) && last.is_some_and(sent)
}

fn with_others(call: &&Call) -> bool {
    matches!(
        call.kind,
        CallKind::Receive | CallKind::Send | CallKind::Poll | CallKind::Lock | CallKind::Sleep
    )
}

/// Whether the recording ended a wait, not what was waited for.
fn is_cut(view: &View<'_>, state: &State) -> bool {
    let mut bursts = view.recording.about.bursts.iter();
    bursts.any(|burst| burst.end_ns == state.end_ns)
}

/// A wait that another thread ended: behind its flush of the log, or for something else it had.
fn lock(view: &View<'_>, flushes: &LogFlushes, state: &State) -> Option<WaitCause> {
    if state.waker == NONE || !of_engine(view, state.waker) {
        return None;
    }
    if view.class(state.waker) == Some(ThreadClass::LogWriter) && !flushes.all.is_empty() {
        return Some(WaitCause::LogQueue);
    }
    let flush = flushes.that_woke(state.waker, state.start_ns, state.end_ns);
    let covered = flush.is_some_and(|flush| !talked(view, state.waker, flush.end_ns, state.end_ns));
    Some(if covered {
        WaitCause::LogQueue
    } else {
        WaitCause::Thread
    })
}

/// A wait for another thread that none ended: its time was over, as of one who looks again and again (DuckDB's
/// `PendingQuery`, 20 ms at a time). Not if the burst was over first.
fn nobodys(view: &View<'_>, state: &State) -> WaitCause {
    if state.waker == NONE && !is_cut(view, state) {
        WaitCause::Timer
    } else {
        WaitCause::Other
    }
}

/// Whether a thread spoke to its client between two instants.
fn talked(view: &View<'_>, thread: u32, from_ns: u64, to_ns: u64) -> bool {
    let (_, calls) = view.calls(thread);
    let next = calls.partition_point(|call| call.start_ns < from_ns);
    calls[next..]
        .iter()
        .take_while(|call| call.start_ns < to_ns)
        .any(|call| received(call) || sent(call))
}
