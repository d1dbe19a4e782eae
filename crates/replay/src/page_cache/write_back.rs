//! Write-back: when the kernel writes dirty pages, and which sessions wait.
//!
//! Source: Linux. The flusher wakes every 5 s (`dirty_writeback_centisecs`) or is woken; `sync_file_range` starts the
//! same writes at once; a sync waits for writes of its files under way (`filemap_write_and_wait_range`). The number
//! of writes under way is limited (`block/traffic.rs`).

use tierwise_device::{Nanos, Op};
use tierwise_recording::Role;
use tierwise_work::TimeCategory;

use crate::block::jobs::{Job, OnDone, SyncWrites};
use crate::durability::sync_stage::range;
use crate::kernel::events::Event;
use crate::kernel::session::Resume;
use crate::kernel::simulation::Simulation;

/// Interval of periodic write-back (`dirty_writeback_centisecs`).
const WRITE_BACK_INTERVAL_NS: Nanos = 5_000_000_000;

impl Simulation<'_> {
    /// Periodic write-back.
    pub(crate) fn periodic_write_back(&mut self) {
        self.events
            .push(self.now + WRITE_BACK_INTERVAL_NS, Event::WriteBack);
        self.dependencies.give_up_waits(self.now, &mut self.events);
        self.start_write_back();
    }

    /// Starts write-back of pages that are too old or too many.
    pub(crate) fn start_write_back(&mut self) {
        self.dirty_pages.begin_write_back(self.now);
        for role in Role::ALL {
            self.write_back_role(role);
        }
    }

    /// Starts write-back above the background limit.
    pub(crate) fn wake_flusher(&mut self) {
        if self.dirty_pages.over_background_limit() {
            self.start_write_back();
        }
    }

    /// Whether one more write may be under way; the first always may. `gently`: for the flusher.
    fn may_write_back(&mut self, role: Role, gently: bool) -> bool {
        self.flusher.under_way(role) == 0 || self.storage.has_room(role, gently)
    }

    /// Sends a role's writes up to the flusher's limit.
    fn write_back_role(&mut self, role: Role) {
        while self.may_write_back(role, true) {
            let Some((sector, sectors)) = self.dirty_pages.next_write_back(role) else {
                return;
            };
            self.send_write_back(role, sector, sectors);
        }
    }

    /// A session starts write-back of a range (`sync_file_range`); whether it can continue at once.
    pub(crate) fn start_writing_back(
        &mut self,
        index: u32,
        role: Role,
        sector: u64,
        sectors: u32,
    ) -> bool {
        let end = sector + u64::from(sectors);
        while self.may_write_back(role, false) {
            let Some((sector, sectors)) = self.dirty_pages.next_dirty(role, sector, end) else {
                return true;
            };
            self.send_write_back(role, sector, sectors);
        }
        self.session(index).resume = Resume::Retry;
        self.set_activity(index, TimeCategory::Write);
        self.flusher.waiting_for_room.push_back(index);
        self.block(index)
    }

    fn send_write_back(&mut self, role: Role, sector: u64, sectors: u32) {
        let job = self
            .jobs
            .add(Job::new(OnDone::WriteBack(role), SyncWrites::None, role));
        let sent = self
            .storage
            .send(self.now, job, role, Op::Write, sector, sectors);
        self.jobs.get(job).pending = sent;
        self.dirty_pages.sent(sectors);
        self.flusher.sent(job, role, sector, sectors);
    }

    /// Lets a sync wait for writes of its files under way; their number.
    pub(crate) fn await_write_back(&mut self, sync: u32) -> u32 {
        let job = *self.jobs.get(sync);
        let SyncWrites::Recorded(script) = job.writes else {
            return 0;
        };
        let sectors = range(&self.program.work.scripts[script as usize]);
        self.flusher.wait_for(sync, job.role, sectors)
    }

    /// A write-back was completed.
    pub(crate) fn write_back_done(&mut self, role: Role, job: u32) {
        if let Some(sectors) = self.flusher.done(job) {
            self.dirty_pages.written(sectors);
        }
        while let Some(sync) = self.flusher.next_waiting(job) {
            self.request_done(sync);
        }
        if self.dirty_pages.over_background_limit() {
            self.dirty_pages.begin_write_back(self.now);
        }
        for session in std::mem::take(&mut self.flusher.waiting_for_room) {
            self.resume(session);
        }
        self.write_back_role(role);
        while !self.dirty_pages.is_full() {
            let Some(session) = self.flusher.throttled.pop_front() else {
                return;
            };
            self.resume(session);
        }
    }
}
