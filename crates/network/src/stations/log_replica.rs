//! The log's replica, made durable by another thread; commits may wait for both.
//!
//! Sources: PostgreSQL, `SyncRepWaitForLSN` (syncrep.c): a session whose commit is durable waits, holding its
//! locks, until the sender learns that the replica's copy is durable; `WalSndLoop` (walsender.c) sends all
//! that was flushed meanwhile; pg_receivewal flushes the received log before it replies (receivelog.c).

use tierwise_device::Nanos;
use tierwise_recording::Role;
use tierwise_work::TimeCategory;

use crate::kernel::clock::TaskId;
use crate::kernel::machine::Machine;
use crate::kernel::task::TaskHandle;
use crate::stations::sync::SyncWrites;

/// The replica. Positions are of the log.
#[derive(Debug)]
pub(crate) struct LogReplica {
    /// Whether commits wait for it.
    is_synchronous: bool,
    /// Sent to it, and durable there.
    sent: u64,
    durable: u64,
    /// The task that writes it, while it waits for more of the log.
    idle_thread: Option<TaskId>,
    /// Sessions that wait for it.
    waiting: Vec<TaskId>,
}

impl LogReplica {
    pub(crate) fn new(is_synchronous: bool) -> Self {
        Self {
            is_synchronous,
            sent: 0,
            durable: 0,
            idle_thread: None,
            waiting: Vec::new(),
        }
    }
}

impl TaskHandle<'_> {
    /// The replica's thread waits until more of the log is durable than it has sent; for ever without a log.
    pub(crate) async fn await_log(&self) {
        while !self.machine().send_log(self.id) {
            self.block(TimeCategory::Sleep).await;
        }
    }

    /// A session whose commit is durable in the log waits for the replica, if it is synchronous.
    pub(crate) async fn await_replica(&self) {
        if self.machine().must_await_replica(self.id) {
            self.block(TimeCategory::LogQueue).await;
        }
    }
}

impl Machine<'_> {
    /// Whether there is more of the log to send; else the replica's thread is idle.
    fn send_log(&mut self, thread: TaskId) -> bool {
        let Some(log) = &mut self.log else {
            return false;
        };
        if log.flushed() > log.replica.sent {
            log.replica.sent = log.flushed();
            return true;
        }
        log.replica.idle_thread = Some(thread);
        false
    }

    /// Wakes the replica's thread if more of the log is durable.
    pub(crate) fn wake_replica(&mut self) {
        let Some(log) = &mut self.log else { return };
        let more = log.flushed() > log.replica.sent;
        if let Some(thread) = log.replica.idle_thread.take_if(|_| more) {
            self.clock.wake_after(log.rules.wake_ns.into(), thread);
        }
    }

    /// The replica is durable up to the sent position: wakes the covered commits.
    pub(crate) fn acknowledge_log(&mut self) {
        let Some(log) = &mut self.log else { return };
        let replica = &mut log.replica;
        replica.durable = replica.sent;
        let (durable, tasks) = (replica.durable, &self.tasks);
        let is_covered = |waiter: &mut TaskId| tasks[waiter.0 as usize].appended <= durable;
        let covered = replica.waiting.extract_if(.., is_covered);
        for (position, waiter) in (1..).zip(covered) {
            let wake_ns = position * Nanos::from(log.rules.wake_ns);
            self.clock.wake_after(wake_ns, waiter);
        }
    }

    fn must_await_replica(&mut self, session: TaskId) -> bool {
        let appended = self.task(session).appended;
        let Some(log) = &mut self.log else {
            return false;
        };
        let waits = log.replica.is_synchronous && log.replica.durable < appended;
        if waits {
            log.replica.waiting.push(session);
        }
        waits
    }
}

// A second log that commits wait for, as MariaDB's binary log: one session syncs it for all that wait.
//
// Models: who comes while a sync is under way waits for its end; then the first of those that wait syncs for all of
// them. With a setting, each n-th of these groups alone syncs, and the others pass at once: the kernel writes their
// pages back. Leaves out: processor time of waking them. Sources: sql/log.cc, `MYSQL_BIN_LOG::trx_group_commit_leader`,
// and `flush_and_sync`, which counts groups up to `sync_binlog`.

/// Sessions at the second log.
#[derive(Debug)]
pub(crate) struct SecondLogQueue {
    /// Every so manieth group syncs; none does for 0.
    every: u32,
    /// Groups since the last sync.
    unsynced: u32,
    /// The session that syncs.
    leader: Option<TaskId>,
    /// Sessions whose commits the sync under way covers.
    covered: Vec<TaskId>,
    /// Sessions that came later.
    waiting: Vec<TaskId>,
}

impl SecondLogQueue {
    pub(crate) fn new(every: Option<u32>) -> Self {
        Self {
            every: every.unwrap_or(1),
            unsynced: 0,
            leader: None,
            covered: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// Counts a group: whether it syncs.
    fn counts(&mut self) -> bool {
        self.unsynced = self.unsynced.saturating_add(1);
        let syncs = self.every > 0 && self.unsynced >= self.every;
        if syncs {
            self.unsynced = 0;
        }
        syncs
    }
}

impl TaskHandle<'_> {
    /// Syncs the second log, or waits for another session's sync that begins later.
    pub(crate) async fn sync_second_log(&self, role: Role, script: u32) {
        if !self.machine().lead_or_join_second_log(self.id) {
            self.block(TimeCategory::LogQueue).await;
            if self.machine().second_log.leader != Some(self.id) {
                return;
            }
        }
        let syncs = self.machine().second_log.counts();
        if syncs {
            let writes = SyncWrites::Recorded { role, script };
            self.run_sync(writes, true).await;
        }
        self.machine().end_second_log_sync();
    }
}

impl Machine<'_> {
    /// Whether a session leads; else it waits.
    fn lead_or_join_second_log(&mut self, session: TaskId) -> bool {
        let leads = self.second_log.leader.is_none();
        if leads {
            self.second_log.leader = Some(session);
        } else {
            self.second_log.waiting.push(session);
        }
        leads
    }

    /// A sync of the second log has ended: those that it covered continue, the first of the others leads the next.
    fn end_second_log_sync(&mut self) {
        let second_log = &mut self.second_log;
        for covered in second_log.covered.drain(..) {
            self.clock.wake(covered);
        }
        let mut waiting = second_log.waiting.drain(..);
        second_log.leader = waiting.next();
        second_log.covered.extend(waiting);
        if let Some(leader) = second_log.leader {
            self.clock.wake(leader);
        }
    }
}
