//! A replica of the log on the same machine: an engine's sender, which waits until the log is durable, and a
//! receiver, which makes the copy durable and acknowledges it (`pg_receivewal`, a standby's receiver).
//!
//! Where sessions wait for the sender too, a commit ends when both copies are durable. The replica has its
//! own group commit: each of its flushes covers all that the log's flushes had covered when it began. So one
//! cycle of both threads is the unit.

use std::collections::{BTreeMap, BTreeSet};

use tierwise_recording::{Call, CallKind, Role, StateKind, ThreadClass};

use crate::constants::REPLICA_WAITED_SHARE;
use crate::index::calls::makes_durable;
use crate::index::rows::Rows;

/// The threads of a second copy of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogReplica {
    pub(crate) sender: u32,
    pub(crate) receiver: u32,
    /// Whether commits wait for the copy.
    pub(crate) waited_for: bool,
}

impl LogReplica {
    /// The copy's threads, if there is a copy: the receiver writes log files that no other thread writes, and
    /// gets their data from a background thread that does not flush the log.
    pub(crate) fn find(rows: &Rows<'_>) -> Option<Self> {
        let (flushes, writers) = touched(rows);
        let alone = |thread: u32| {
            let mut files = writers.values().filter(|by| by.contains(&thread));
            files.all(|by| by.len() == 1)
        };
        let is_sent = |thread: u32| rows.calls(thread).1.iter().any(|call| rows.received(call));
        let receivers = flushes.keys().copied();
        receivers
            .filter(|&thread| flushes.len() > 1 && alone(thread) && is_sent(thread))
            .find_map(|receiver| {
                let sender = sender(rows, receiver)?;
                let sends = rows.class(sender) == Some(ThreadClass::Background);
                (sends && !flushes.contains_key(&sender)).then(|| Self {
                    sender,
                    receiver,
                    waited_for: f64::from(let_go(rows, sender, receiver))
                        >= REPLICA_WAITED_SHARE.get() * f64::from(flushes[&receiver]),
                })
            })
    }

    /// Whether a thread is one of the two.
    pub(crate) fn has(self, thread: u32) -> bool {
        thread == self.sender || thread == self.receiver
    }
}

/// Whether a call flushes the log.
pub(crate) fn flushes_log(rows: &Rows<'_>, call: &Call) -> bool {
    makes_durable(call) && !call.failed && rows.role(call.file) == Some(Role::Log)
}

/// Each thread's number of log flushes, and the writers of each log file.
fn touched(rows: &Rows<'_>) -> (BTreeMap<u32, u32>, BTreeMap<u32, BTreeSet<u32>>) {
    let mut flushes: BTreeMap<u32, u32> = BTreeMap::new();
    let mut writers: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for call in &rows.recording.calls {
        if rows.role(call.file) != Some(Role::Log) {
            continue;
        }
        if flushes_log(rows, call) {
            *flushes.entry(call.thread).or_default() += 1;
        }
        if call.kind == CallKind::Write || flushes_log(rows, call) {
            writers.entry(call.file).or_default().insert(call.thread);
        }
    }
    (flushes, writers)
}

/// The thread that ended most of a thread's waits.
fn sender(rows: &Rows<'_>, receiver: u32) -> Option<u32> {
    let mut ended: BTreeMap<u32, u32> = BTreeMap::new();
    let waits = rows.states(receiver).iter();
    for wait in waits.filter(|state| state.kind == StateKind::Blocked) {
        if rows
            .class(wait.waker)
            .is_some_and(|class| class != ThreadClass::Kernel)
        {
            *ended.entry(wait.waker).or_default() += 1;
        }
    }
    ended
        .into_iter()
        .max_by_key(|&(_, count)| count)
        .map(|(thread, _)| thread)
}

/// Waits of sessions that the sender ended.
fn let_go(rows: &Rows<'_>, sender: u32, receiver: u32) -> u32 {
    let sessions = rows.threads(ThreadClass::Session);
    let waits = sessions
        .filter(|&thread| thread != receiver)
        .flat_map(|thread| rows.states(thread));
    waits
        .filter(|state| state.kind == StateKind::Blocked && state.waker == sender)
        .count() as u32
}
