//! The log's replica, made durable by another thread; commits may wait for both.
//!
//! Sources: PostgreSQL, `SyncRepWaitForLSN` (syncrep.c): a session whose commit is durable waits, holding its
//! locks, until the sender learns that the replica's copy is durable; `WalSndLoop` (walsender.c) sends all
//! that was flushed meanwhile; pg_receivewal flushes the received log before it replies (receivelog.c).

use tierwise_device::Nanos;
use tierwise_work::TimeCategory;

use crate::kernel::events::Event;
use crate::kernel::session::Resume;
use crate::kernel::simulation::Simulation;

impl Simulation<'_> {
    /// The replica's thread waits for more of the log; whether there is more already.
    pub(crate) fn await_log(&mut self, index: u32) -> bool {
        let Some(log) = &mut self.log else {
            return self.block(index);
        };
        if log.flushed > log.replica.sent {
            log.replica.sent = log.flushed;
            return true;
        }
        log.replica.idle_thread = Some(index);
        self.session(index).resume = Resume::Retry;
        self.set_activity(index, TimeCategory::Sleep);
        self.block(index)
    }

    /// Wakes the replica's thread if more of the log is durable.
    pub(crate) fn wake_replica(&mut self) {
        let Some(log) = &mut self.log else { return };
        if let Some(thread) = log
            .replica
            .idle_thread
            .take_if(|_| log.flushed > log.replica.sent)
        {
            let at = self.now + Nanos::from(log.rules.wake_ns);
            self.events.push(at, Event::Wake(thread));
        }
    }

    /// The replica is durable up to the sent position: wakes the covered commits. Always true.
    pub(crate) fn acknowledge_replica(&mut self) -> bool {
        let Some(log) = &mut self.log else {
            return true;
        };
        log.replica.durable = log.replica.sent;
        let (durable, sessions) = (log.replica.durable, &self.sessions);
        let covered = |waiter: &mut u32| sessions[*waiter as usize].appended <= durable;
        let mut at = self.now;
        for waiter in log.replica.waiting.extract_if(.., covered) {
            at += Nanos::from(log.rules.wake_ns);
            self.events.push(at, Event::Wake(waiter));
        }
        true
    }

    /// Whether a session whose commit is durable in the log must wait for the replica; if so, it waits.
    pub(crate) fn awaits_replica(&mut self, index: u32) -> bool {
        let appended = self.session(index).appended;
        let Some(log) = &mut self.log else {
            return false;
        };
        if !log.replica.is_synchronous || log.replica.durable >= appended {
            return false;
        }
        log.replica.waiting.push(index);
        self.session(index).resume = Resume::Committed;
        self.set_activity(index, TimeCategory::LogQueue);
        self.leave_core(index);
        true
    }
}
