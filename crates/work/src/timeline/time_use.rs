//! Use of a thread's time: a category, and the file that it waited for.

use tierwise_recording::{CallKind, NONE, Role, State, StateKind, ThreadClass};

use crate::index::rows::Rows;
use crate::log::flushes::LogFlushes;
use crate::timeline::time_category::TimeCategory;
use crate::timeline::wait::{WaitCause, wait_cause};

/// Number of preceding calls in which a wait for asynchronous calls looks for its call.
const MOST_CALLS: usize = 1024;

/// Use of some time of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeUse {
    pub(crate) category: TimeCategory,
    /// Index of the file, or [`NONE`].
    pub(crate) file: u32,
}

impl TimeUse {
    /// Of a state of a thread.
    pub(crate) fn of(rows: &Rows<'_>, flushes: &LogFlushes, state: &State) -> Self {
        let category = match state.kind {
            StateKind::Cpu => TimeCategory::Cpu,
            StateKind::Runnable => TimeCategory::Runnable,
            StateKind::Blocked => {
                let cause = wait_cause(rows, flushes, state);
                return Self::of_wait(rows, flushes, state, cause);
            }
        };
        let file = NONE;
        Self { category, file }
    }

    /// Of a wait whose cause is known.
    pub(crate) fn of_wait(
        rows: &Rows<'_>,
        flushes: &LogFlushes,
        state: &State,
        cause: WaitCause,
    ) -> Self {
        if let Some(of_file) = file_access(rows, state, cause) {
            return of_file;
        }
        let category = category(rows, state, cause);
        let flush = (category == TimeCategory::LogQueue)
            .then(|| flushes.last_of(state.waker, state.end_ns))
            .flatten();
        let file = flush.map_or(NONE, |flush| flush.file);
        Self { category, file }
    }

    /// The role of the file that was waited for.
    pub(crate) fn role(self, rows: &Rows<'_>) -> Option<Role> {
        match self.category {
            TimeCategory::LogDevice | TimeCategory::LogQueue => Some(Role::Log),
            _ => rows.role(self.file),
        }
    }

    fn reads(file: u32) -> Self {
        let category = TimeCategory::Read;
        Self { category, file }
    }

    fn changes(rows: &Rows<'_>, file: u32) -> Self {
        let category = match rows.role(file) {
            Some(Role::Log) => TimeCategory::LogDevice,
            _ => TimeCategory::Write,
        };
        Self { category, file }
    }
}

/// A wait of the thread itself for a file: in a call on it, for an asynchronous call, or in a page fault.
fn file_access(rows: &Rows<'_>, state: &State, cause: WaitCause) -> Option<TimeUse> {
    match (cause, rows.call(state.call)) {
        (WaitCause::Read, Some(call)) if call.kind == CallKind::Await => awaited(rows, state),
        (WaitCause::Read, Some(call)) => Some(TimeUse::reads(call.file)),
        (WaitCause::LogDevice | WaitCause::Write | WaitCause::Sync, Some(call)) => {
            Some(TimeUse::changes(rows, call.file))
        }
        (WaitCause::Other, Some(call)) if call.kind == CallKind::Resize => {
            Some(TimeUse::changes(rows, call.file))
        }
        (WaitCause::Other, None) => {
            let read = rows.fault_reads(state).last().copied();
            read.map(|block| TimeUse::reads(block.file))
        }
        _ => None,
    }
}

/// The asynchronous call under way that completes first. The woken thread itself may report the completion, a
/// little after the wakeup.
fn awaited(rows: &Rows<'_>, state: &State) -> Option<TimeUse> {
    let (_, calls) = rows.calls(state.thread);
    let before = calls.partition_point(|call| call.start_ns <= state.end_ns);
    let recent = calls[..before].iter().rev().take(MOST_CALLS);
    let under_way = recent
        .filter(|call| call.asynchronous && call.file != NONE && call.end_ns >= state.start_ns);
    let call = under_way.min_by_key(|call| call.end_ns)?;
    Some(match call.kind {
        CallKind::Read => TimeUse::reads(call.file),
        _ => TimeUse::changes(rows, call.file),
    })
}

/// Use of a wait for no file of its own. Clients wait for their server; the other threads outside sessions
/// wait for time or for work where no flush of the log is named.
fn category(rows: &Rows<'_>, state: &State, cause: WaitCause) -> TimeCategory {
    let sleeps = || {
        let call = rows.call(state.call);
        call.is_some_and(|call| call.kind == CallKind::Sleep)
    };
    match (rows.class(state.thread), cause) {
        (Some(ThreadClass::Client), _) if sleeps() => TimeCategory::Sleep,
        (Some(ThreadClass::Client), _) => TimeCategory::Client,
        (Some(ThreadClass::Kernel), _) => TimeCategory::Sleep,
        (_, WaitCause::LogQueue | WaitCause::LogReplica | WaitCause::SecondLog) => {
            TimeCategory::LogQueue
        }
        (Some(ThreadClass::Session), WaitCause::Client) => TimeCategory::Client,
        (Some(ThreadClass::Session), WaitCause::Thread) => TimeCategory::Lock,
        (Some(ThreadClass::Session), WaitCause::Read) => TimeCategory::Read,
        (_, WaitCause::Other) => TimeCategory::Other,
        _ => TimeCategory::Sleep,
    }
}
