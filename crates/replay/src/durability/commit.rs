//! Commits: the session that flushes the log, the sessions that wait for that flush, and their continuation.
//!
//! Sources: PostgreSQL, `XLogFlush` (xlog.c): the first session to get WALWriteLock writes all that is inserted by
//! then, nothing that comes later; the others sleep until it is released, check whether they are covered, else
//! compete for it. InnoDB, `group_commit_lock` (log0sync.cc): the same, but `release` wakes only the last of the
//! uncovered sessions, which leads unless another came first. RocksDB, `WriteThread` (write_thread.cc): the leader
//! takes the queued sessions; the next leader is named when it is done. SQLite: one writer holds the database, a hot
//! lock in the work. Not modelled: a write that overlaps a flush of the log.

use std::collections::VecDeque;

use tierwise_device::Nanos;
use tierwise_recording::Role;
use tierwise_work::{Grouping, TimeCategory};

use crate::block::jobs::{Job, OnDone, SyncWrites};
use crate::engines::wal::CheckpointedLog;
use crate::kernel::events::Event;
use crate::kernel::session::{NONE, Resume, SERVER};
use crate::kernel::simulation::Simulation;

impl Simulation<'_> {
    /// Commits; whether the session can continue at once.
    pub(crate) fn commit(&mut self, index: u32) -> bool {
        let appended = self.session(index).appended;
        let Some(log) = &mut self.log else {
            self.committed(index);
            return true;
        };
        if log.flushed >= appended {
            if self.awaits_replica(index) {
                return false;
            }
            self.release_locks(index);
            return true;
        }
        self.release_before_commit(index);
        let Some(log) = &mut self.log else {
            return true;
        };
        let grouped = matches!(
            log.rules.grouping,
            Grouping::LeaderFollower | Grouping::Relay | Grouping::WriteGroup
        );
        if grouped && log.is_busy() && log.holder != index {
            log.waiting.push_back(index);
            self.set_activity(index, TimeCategory::LogQueue);
            return self.block(index);
        }
        if grouped {
            log.holder = index;
        }
        if self.wait_for_more_commits(index) {
            return false;
        }
        self.lead(index);
        false
    }

    /// A session leads a flush of all that is in the log now.
    pub(crate) fn lead(&mut self, index: u32) {
        let Some(log) = &mut self.log else { return };
        let growing_ns = self.wal.as_ref().map_or(0.0, CheckpointedLog::growing_ns);
        let leader_ns = (log.leader_ns as f64 + growing_ns).max(0.0) as Nanos;
        let to = log.inserted;
        self.lead_flush(index, to, leader_ns);
    }

    /// A session leads a flush up to `to`; what others append meanwhile waits for the next flush.
    fn lead_flush(&mut self, index: u32, to: u64, leader_ns: Nanos) {
        self.session(index).flush_end = to;
        if leader_ns == 0 {
            return self.send_flush(index);
        }
        self.request_core(index, SERVER, leader_ns, Resume::SendFlush);
    }

    /// The leader has written the log's buffer; it sends the flush and waits.
    pub(crate) fn send_flush(&mut self, leader: u32) {
        self.set_activity(leader, TimeCategory::LogDevice);
        self.leave_core(leader);
        self.start_flush(leader);
    }

    /// Starts a flush for a session, or for the engine's own thread.
    pub(crate) fn start_flush(&mut self, leader: u32) {
        let Some(log) = &mut self.log else { return };
        let grows = self.wal.as_mut().map(CheckpointedLog::grows);
        let scripts = log.scripts(grows);
        let script = scripts.0 + self.random.below(scripts.1.max(1) as usize) as u32;
        let to = match leader {
            NONE => log.inserted,
            leader => self.sessions[leader as usize].flush_end,
        };
        let from = log.flushed;
        let writes = SyncWrites::Log { script, from, to };
        let job = self.jobs.add(Job {
            leader,
            ..Job::new(OnDone::LogFlush, writes, Role::Log)
        });
        self.metrics.log_flushes += 1;
        self.advance_job(job);
    }

    /// The device has completed a flush; its leader notices when it gets a core.
    pub(crate) fn log_flushed(&mut self, job: Job) {
        let SyncWrites::Log { to, .. } = job.writes else {
            return;
        };
        if job.leader == NONE {
            if let Some(log) = &mut self.log {
                log.flusher_at_work = false;
            }
            return self.finish_flush(to);
        }
        let release_ns = self.log.as_ref().map_or(0, |log| log.release_ns);
        self.request_core(job.leader, SERVER, release_ns.max(1), Resume::ReleaseLog);
    }

    /// The leader releases the log and continues.
    pub(crate) fn release_log(&mut self, leader: u32) {
        let to = self.session(leader).flush_end;
        if let Some(log) = self.log.as_mut().filter(|log| log.holder == leader) {
            log.holder = NONE;
        }
        self.finish_flush(to);
        self.log_durable(leader);
    }

    /// A session's commit is durable in the log.
    pub(crate) fn log_durable(&mut self, index: u32) {
        if !self.awaits_replica(index) {
            self.committed(index);
            self.proceed(index);
        }
    }

    /// Ends a flush that reached `to`: wakes the replica's thread and waiting sessions.
    fn finish_flush(&mut self, to: u64) {
        let Some(log) = &mut self.log else { return };
        log.flushed = log.flushed.max(to);
        if log.rules.grouping == Grouping::WriteGroup {
            self.name_next_leader();
        }
        self.wake_replica();
        self.wake_log_waiters();
    }

    /// Names the first uncovered session the next leader, regardless of later arrivals.
    fn name_next_leader(&mut self) {
        let Some(log) = &mut self.log else { return };
        let sessions = &self.sessions;
        let uncovered = |waiting: &&u32| sessions[**waiting as usize].appended > log.flushed;
        log.holder = log.waiting.iter().find(uncovered).copied().unwrap_or(NONE);
    }

    /// Wakes waiting sessions, the last one first: PostgreSQL's `LWLockQueueSelf` puts sessions that wait until a
    /// lock is free at the head of its list. Covered sessions continue, the others check again.
    fn wake_log_waiters(&mut self) {
        let Some(log) = &mut self.log else { return };
        let mut woken = std::mem::take(&mut log.waiting);
        if log.rules.grouping == Grouping::Relay {
            keep_asleep(&mut woken, &mut log.waiting, |waiter| {
                self.sessions[waiter as usize].appended > log.flushed
            });
        }
        let mut at = self.now;
        while let Some(waiter) = woken.pop_back() {
            at += Nanos::from(log.rules.wake_ns);
            let session = &mut self.sessions[waiter as usize];
            session.resume = if session.appended <= log.flushed {
                Resume::Committed
            } else {
                Resume::RecheckFlush
            };
            self.events.push(at, Event::Wake(waiter));
        }
        if log.waiting.is_empty() {
            log.waiting = woken; // nothing but the memory that it has
        }
    }

    /// A session that was woken in vain needs a core to notice.
    pub(crate) fn recheck_flush(&mut self, index: u32) {
        let log = self.log.as_ref();
        let recheck_ns = log.map_or(0, |log| log.rules.recheck_ns.into());
        self.request_core(index, SERVER, recheck_ns, Resume::Retry);
    }

    /// Completes a session's commit.
    pub(crate) fn committed(&mut self, index: u32) {
        self.metrics.commits += 1;
        self.publish_frames(index);
        self.release_locks(index);
    }

    /// The engine's own thread periodically flushes the rest.
    pub(crate) fn periodic_log_flush(&mut self) {
        let Some(log) = &mut self.log else { return };
        let Some(period_ns) = log.rules.flusher_period_ns else {
            return;
        };
        self.events
            .push(self.now + period_ns.max(1), Event::Flusher);
        if !log.is_busy() && log.inserted > log.flushed {
            log.flusher_at_work = true;
            self.start_flush(NONE);
        }
    }
}

/// Keeps uncovered sessions of a stack (top last) asleep, except the last, which is woken first; the covered
/// sessions follow in order of arrival.
fn keep_asleep(
    woken: &mut VecDeque<u32>,
    asleep: &mut VecDeque<u32>,
    uncovered: impl Fn(u32) -> bool,
) {
    let (mut left, covered): (VecDeque<u32>, VecDeque<u32>) =
        woken.drain(..).partition(|waiter| uncovered(*waiter));
    let next = left.pop_back();
    *asleep = left;
    woken.extend(covered.into_iter().rev().chain(next));
}
