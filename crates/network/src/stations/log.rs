//! The log: commits, the session that flushes it, the sessions that wait for that flush.
//!
//! Sources: PostgreSQL, `XLogFlush` (xlog.c): the first session to get WALWriteLock writes all that is inserted by
//! then, nothing that comes later; the others sleep until it is released, check whether they are covered, else
//! compete for it. InnoDB, `group_commit_lock` (log0sync.cc): the same, but `release` wakes only the last of the
//! uncovered sessions, which leads unless another came first. RocksDB, `WriteThread` (write_thread.cc): the leader
//! takes the queued sessions; the next leader is named when it is done. SQLite: one writer holds the database, a hot
//! lock in the work. A leader's wait for more commits: PostgreSQL, `MinimumActiveBackends` (procarray.c). Left out: a
//! write that overlaps a flush of the log.
//!
//! Commits that do not wait (a setting): they take no processor time of a flush, but that of their own write where they
//! write; a thread flushes the log periodically, and a session that syncs the log's file flushes what no commit has
//! waited for. Sources: PostgreSQL, `XLogBackgroundFlush` (xlog.c); InnoDB, `srv_sync_log_buffer_in_background`
//! (srv0srv.cc); SQLite, `walCheckpoint` (wal.c), which syncs the log first; RocksDB: the kernel's write-back. Left out:
//! a full log buffer, and PostgreSQL's flush each `wal_writer_flush_after`.

use std::collections::VecDeque;

use tierwise_device::{Nanos, SECTOR_BYTES};
use tierwise_work::constants::RECHECK_NS;
use tierwise_work::{CommitDelay, CommitGrouping, LogRules, TimeCategory};

use crate::api::commit_settings::{CommitSettings, UnflushedCommits};
use crate::block::role_layout::MAX_SECTORS;
use crate::kernel::clock::TaskId;
use crate::kernel::machine::Machine;
use crate::kernel::task::TaskHandle;
use crate::program::Program;
use crate::stations::cores::CoreClaimant;
use crate::stations::log_replica::LogReplica;
use crate::stations::sync::SyncWrites;

/// The state of the log. Positions are bytes since the run began: durable ones never exceed those inserted.
#[derive(Debug)]
pub(crate) struct DatabaseLog<'a> {
    pub(crate) rules: &'a LogRules,
    commit_delay: Option<CommitDelay>,
    /// Whether commits do not wait for the log, and how it is flushed then.
    unflushed: Option<UnflushedCommits>,
    /// Most bytes of an append.
    most_bytes: u32,
    inserted: u64,
    flushed: u64,
    /// The leader that flushes or is about to.
    leader: Option<TaskId>,
    waiting: VecDeque<TaskId>,
    /// Whether the engine's own thread, which is no session, flushes now.
    flusher_at_work: bool,
    pub(crate) replica: LogReplica,
}

impl<'a> DatabaseLog<'a> {
    pub(crate) fn new(rules: &'a LogRules, program: &Program, commits: &CommitSettings) -> Self {
        let leaves_replica = commits.without_replica || commits.unflushed.is_some();
        let waits_for_replica = program.waits_for_replica() && !leaves_replica;
        Self {
            rules,
            commit_delay: commits.commit_delay(rules.commit_delay),
            unflushed: commits.unflushed,
            most_bytes: if commits.least_log { 1 } else { u32::MAX },
            inserted: 0,
            flushed: 0,
            leader: None,
            waiting: VecDeque::with_capacity(64),
            flusher_at_work: false,
            replica: LogReplica::new(waits_for_replica),
        }
    }

    /// Position up to which the log is durable.
    pub(crate) fn flushed(&self) -> u64 {
        self.flushed
    }

    fn is_grouped(&self) -> bool {
        matches!(
            self.rules.grouping,
            CommitGrouping::LeaderFollower | CommitGrouping::Relay | CommitGrouping::WriteGroup
        )
    }

    /// Lets a session lead the next flush, unless one is under way: then it waits. Whether it leads.
    fn lead_or_wait(&mut self, session: TaskId) -> bool {
        if !self.is_grouped() {
            return true;
        }
        let busy = self.leader.is_some() || self.flusher_at_work;
        if busy && self.leader != Some(session) {
            self.waiting.push_back(session);
            return false;
        }
        self.leader = Some(session);
        true
    }

    /// Writes of whole pages for the bytes between two positions: first sector and sectors within the role. Two parts
    /// where the log wraps.
    pub(crate) fn writes(&self, from: u64, to: u64) -> [(u64, u32); 2] {
        let page = u64::from(self.rules.page_bytes).max(SECTOR_BYTES) / SECTOR_BYTES * SECTOR_BYTES;
        let all = (self.rules.sectors.min(MAX_SECTORS) * SECTOR_BYTES / page).max(1) * page;
        let start = from / page * page;
        let length = (to.max(from + 1).next_multiple_of(page) - start).min(all);
        let place = start % all;
        let part = length.min(all - place);
        let sectors = |place: u64, length: u64| {
            (
                self.rules.first_sector + place / SECTOR_BYTES,
                (length / SECTOR_BYTES) as u32,
            )
        };
        [sectors(place, part), sectors(0, length - part)]
    }
}

impl TaskHandle<'_> {
    /// Commits: waits until the log is durable up to the session's last append.
    pub(crate) async fn commit(&self) {
        self.change(|task| {
            task.commits_ahead = task.commits_ahead.saturating_sub(1);
            task.commits_done += 1;
        });
        let appended = self.change(|task| task.appended);
        let flushed = self.machine().log.as_ref().map(DatabaseLog::flushed);
        let Some(flushed) = flushed else {
            return self.machine().committed(self.id);
        };
        if flushed >= appended {
            self.await_replica().await;
            return self.machine().release_locks(self.id);
        }
        self.machine().release_before_commit(self.id);
        let unflushed = self.machine().unflushed();
        if let Some(unflushed) = unflushed {
            let write_ns = self.machine().log_time_ns(|rules| rules.write_cpu_ns);
            if unflushed.writes && write_ns > 0 {
                self.run(CoreClaimant::Server, write_ns).await;
            }
            return self.machine().committed(self.id);
        }
        while !self.machine().is_durable(self.id) {
            if self.machine().lead_or_wait(self.id) {
                self.lead_flush().await;
                break;
            }
            self.block(TimeCategory::LogQueue).await;
            if !self.machine().is_durable(self.id) {
                // A session that was woken in vain needs a core to notice.
                self.run(CoreClaimant::Server, RECHECK_NS.get()).await;
            }
        }
        self.await_replica().await;
        self.machine().committed(self.id);
    }

    /// Leads a flush of all that is in the log when it starts; what others append meanwhile waits for the next one.
    async fn lead_flush(&self) {
        let delay_ns = self.machine().commit_delay_ns(self.id);
        if let Some(delay_ns) = delay_ns {
            self.sleep(delay_ns, TimeCategory::Sleep).await;
        }
        let (to, leader_ns) = self.machine().begin_flush();
        if leader_ns > 0 {
            self.run(CoreClaimant::Server, leader_ns).await;
        }
        self.flush_log(to, true).await;
        let release_ns = self.machine().log_time_ns(|rules| rules.release_cpu_ns);
        self.run(CoreClaimant::Server, release_ns.max(1)).await;
        self.machine().release_log(self.id, to);
    }

    /// Writes the log up to `to`, as in a recorded flush; `session`: for a session, which wakes between data and flush.
    async fn flush_log(&self, to: u64, session: bool) {
        let writes = self.machine().log_writes(to);
        if let Some(writes) = writes {
            self.run_sync(writes, session).await;
        }
    }

    /// The engine's own thread periodically flushes the rest.
    pub(crate) async fn flush_log_periodically(self) {
        let period_ns = self.machine().flusher_period_ns();
        let Some(period_ns) = period_ns else {
            return;
        };
        let mut due = 0;
        loop {
            self.sleep_until(due, TimeCategory::Sleep).await;
            due += period_ns.max(1);
            self.flush_rest(false).await;
        }
    }

    /// Flushes what is in the log, unless that is under way; whether it did.
    async fn flush_rest(&self, session: bool) -> bool {
        let flushes_to = self.machine().begin_engine_flush();
        if let Some(to) = flushes_to {
            self.flush_log(to, session).await;
            self.machine().end_engine_flush(to);
        }
        flushes_to.is_some()
    }

    /// A session syncs the log's file: whether that flushed what commits did not wait for. The replica's copy has no
    /// such bytes.
    pub(crate) async fn flush_unawaited(&self) -> bool {
        let unawaited = self.machine().unflushed().is_some();
        let session = self.change(|task| task.session);
        let copies =
            session.is_some_and(|session| self.program.sessions[session as usize].replicates_log);
        unawaited && !copies && self.flush_rest(true).await
    }
}

impl Machine<'_> {
    /// A session appends to the log's buffer.
    pub(crate) fn append(&mut self, session: TaskId, size_bytes: u32) {
        if let Some(log) = &mut self.log {
            log.inserted += u64::from(size_bytes.min(log.most_bytes));
            let appended = log.inserted;
            self.task(session).appended = appended;
        }
    }

    fn is_durable(&mut self, session: TaskId) -> bool {
        let appended = self.task(session).appended;
        self.log.as_ref().is_none_or(|log| log.flushed >= appended)
    }

    fn lead_or_wait(&mut self, session: TaskId) -> bool {
        let log = self.log.as_mut();
        log.is_none_or(|log| log.lead_or_wait(session))
    }

    /// Whether commits do not wait for the log.
    fn unflushed(&self) -> Option<UnflushedCommits> {
        self.log.as_ref()?.unflushed
    }

    /// How often a thread that no session waits for flushes the log.
    fn flusher_period_ns(&self) -> Option<Nanos> {
        let log = self.log.as_ref()?;
        let set = log
            .unflushed
            .map(|unflushed| Nanos::from(unflushed.flush_period_us) * 1000);
        set.or(log.rules.flusher_period_ns)
    }

    /// Whether a leader of the log's flush waits for more commits.
    pub(crate) fn leader_waits(&self) -> bool {
        self.log
            .as_ref()
            .is_some_and(|log| log.commit_delay.is_some())
    }

    /// A time of the log's rules.
    pub(crate) fn log_time_ns(&self, time: impl Fn(&LogRules) -> u32) -> Nanos {
        self.log.as_ref().map_or(0, |log| time(log.rules).into())
    }

    /// How long a flush's leader waits for more commits, if the rules and the other sessions ask for it.
    fn commit_delay_ns(&self, leader: TaskId) -> Option<Nanos> {
        let delay = self.log.as_ref()?.commit_delay?;
        let tasks = (0..).zip(&self.tasks);
        let others = tasks.filter(|&(index, _)| TaskId(index) != leader);
        // Others count that have a transaction number and wait for no lock: until they run again after their commit.
        let active = others.filter(|(_, task)| {
            let has_number =
                task.commits_ahead > 0 || (task.commits_done > 0 && task.core.is_none());
            let waits = task.between_transactions || task.activity == TimeCategory::Lock;
            task.counts && has_number && !waits
        });
        let siblings = delay.siblings as usize;
        (active.take(siblings).count() == siblings).then_some(delay.time_ns.into())
    }

    /// How far a flush that starts now reaches, and its leader's processor time.
    fn begin_flush(&self) -> (u64, Nanos) {
        let to = self.log.as_ref().map_or(0, |log| log.inserted);
        (to, self.log_time_ns(|rules| rules.leader_cpu_ns))
    }

    /// The writes of a flush, and the recorded one that it resembles, drawn at random.
    fn log_writes(&mut self, to: u64) -> Option<SyncWrites> {
        let log = self.log.as_ref()?;
        let script = self.random.below(log.rules.scripts.len().max(1)) as u32;
        self.metrics.log_flushes += 1;
        let from = log.flushed;
        Some(SyncWrites::Log { script, from, to })
    }

    fn release_log(&mut self, leader: TaskId, to: u64) {
        if let Some(log) = self.log.as_mut().filter(|log| log.leader == Some(leader)) {
            log.leader = None;
        }
        self.end_flush(to);
    }

    fn begin_engine_flush(&mut self) -> Option<u64> {
        let log = self.log.as_mut()?;
        let idle = log.leader.is_none() && !log.flusher_at_work;
        log.flusher_at_work |= idle && log.inserted > log.flushed;
        (idle && log.flusher_at_work).then_some(log.inserted)
    }

    fn end_engine_flush(&mut self, to: u64) {
        if let Some(log) = &mut self.log {
            log.flusher_at_work = false;
        }
        self.end_flush(to);
    }

    /// The log is durable up to `to`: wakes the replica's thread and the waiting sessions.
    fn end_flush(&mut self, to: u64) {
        let Some(log) = &mut self.log else { return };
        log.flushed = log.flushed.max(to);
        debug_assert!(log.flushed <= log.inserted, "durable before it is inserted");
        let (flushed, tasks) = (log.flushed, &self.tasks);
        let is_uncovered = |waiting: &TaskId| tasks[waiting.0 as usize].appended > flushed;
        if log.rules.grouping == CommitGrouping::WriteGroup {
            // The next leader, regardless of later arrivals.
            log.leader = log.waiting.iter().copied().find(is_uncovered);
        }
        let mut woken = std::mem::take(&mut log.waiting);
        match log.rules.grouping {
            CommitGrouping::Relay => {
                keep_uncovered_asleep(&mut woken, &mut log.waiting, is_uncovered)
            }
            // PostgreSQL's `LWLockQueueSelf` puts sessions that wait until a lock is free at the head of its list.
            _ => woken.make_contiguous().reverse(),
        }
        let wake_ns = Nanos::from(log.rules.wake_ns);
        for (position, waiter) in (1..).zip(&woken) {
            self.clock.wake_after(position * wake_ns, *waiter);
        }
        if log.waiting.is_empty() {
            woken.clear();
            log.waiting = woken; // for the memory that it has
        }
        self.wake_replica();
    }

    /// Completes a session's commit.
    fn committed(&mut self, session: TaskId) {
        self.metrics.commits += 1;
        self.release_locks(session);
    }
}

/// Keeps uncovered sessions asleep, except the last one, which is woken first; the covered sessions follow in order of
/// arrival.
fn keep_uncovered_asleep(
    woken: &mut VecDeque<TaskId>,
    asleep: &mut VecDeque<TaskId>,
    is_uncovered: impl Fn(&TaskId) -> bool,
) {
    let (mut left, covered): (VecDeque<_>, VecDeque<_>) = woken.drain(..).partition(is_uncovered);
    woken.extend(left.pop_back());
    woken.extend(covered);
    *asleep = left;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_pages_are_written_round_and_round() {
        let rules = LogRules {
            grouping: CommitGrouping::Alone,
            scripts: Vec::new(),
            page_bytes: 8192,
            first_sector: 100,
            sectors: 64,
            leader_cpu_ns: 0,
            release_cpu_ns: 0,
            write_cpu_ns: 0,
            wake_ns: 0,
            flusher_period_ns: None,
            commit_delay: None,
        };
        let log = DatabaseLog {
            rules: &rules,
            commit_delay: None,
            unflushed: None,
            most_bytes: u32::MAX,
            inserted: 0,
            flushed: 0,
            leader: None,
            waiting: VecDeque::new(),
            flusher_at_work: false,
            replica: LogReplica::new(false),
        };
        assert_eq!(log.writes(100, 300), [(100, 16), (100, 0)]);
        assert_eq!(log.writes(8191, 8193), [(100, 32), (100, 0)]);
        assert_eq!(log.writes(3 * 8192, 5 * 8192), [(148, 16), (100, 16)]);
    }
}
