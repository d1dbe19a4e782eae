//! A replica of the log on the same machine: an engine's sender, which waits until the log is durable, and a
//! receiver, which makes the copy durable and acknowledges it (`pg_receivewal`, a standby's receiver).
//!
//! Where sessions wait for the sender too, a commit ends when both copies are durable. The replica has its
//! own group commit: each of its flushes covers all that the log's flushes had covered when it began. So one
//! cycle of both threads is the unit.

use std::collections::{BTreeMap, BTreeSet};

use tierwise_recording::{Call, CallKind, Role, ThreadClass};

use crate::constants::REPLICA_WAITED_SHARE;
use crate::rows::{Rows, makes_durable};

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
        let is_sent = |thread: u32| rows.calls(thread).iter().any(|call| rows.received(call));
        let mut receivers = flushes.keys().copied();
        receivers.find_map(|receiver| {
            if flushes.len() < 2 || !alone(receiver) || !is_sent(receiver) {
                return None;
            }
            let sender = sender(rows, receiver)?;
            let sends = rows.class(sender) == Some(ThreadClass::Background);
            let least = REPLICA_WAITED_SHARE.get() * f64::from(flushes[&receiver]);
            (sends && !flushes.contains_key(&sender)).then(|| Self {
                sender,
                receiver,
                waited_for: let_go(rows, sender, receiver) as f64 >= least,
            })
        })
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
        let flushed = flushes_log(rows, call);
        if flushed {
            *flushes.entry(call.thread).or_default() += 1;
        }
        let writes = call.kind == CallKind::Write && rows.role(call.file) == Some(Role::Log);
        if writes || flushed {
            writers.entry(call.file).or_default().insert(call.thread);
        }
    }
    (flushes, writers)
}

/// The thread that ended most of a thread's waits.
fn sender(rows: &Rows<'_>, receiver: u32) -> Option<u32> {
    let mut ended: BTreeMap<u32, u32> = BTreeMap::new();
    for wait in rows.waits(receiver) {
        let class = rows.class(wait.waker);
        if class.is_some_and(|class| class != ThreadClass::Kernel) {
            *ended.entry(wait.waker).or_default() += 1;
        }
    }
    let most = ended.into_iter().max_by_key(|&(_, count)| count);
    most.map(|(thread, _)| thread)
}

/// Number of waits of sessions that the sender ended.
fn let_go(rows: &Rows<'_>, sender: u32, receiver: u32) -> usize {
    let sessions = rows.threads(ThreadClass::Session);
    let waits = sessions
        .filter(|&thread| thread != receiver)
        .flat_map(|thread| rows.waits(thread));
    waits.filter(|wait| wait.waker == sender).count()
}
