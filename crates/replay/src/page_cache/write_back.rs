//! The kernel's write-back: what is sent when, and who waits for that.
//!
//! Source: Linux. The flusher looks every 5 s (`dirty_writeback_centisecs`) or is woken; `sync_file_range` starts the
//! same writes at once; a sync waits for those of its files that are under way already
//! (`filemap_write_and_wait_range`). Only so many of such writes may be under way (`block/writeback_throttle.rs`): who
//! has more waits.

use tierwise_device::Nanos;
use tierwise_recording::Role;
use tierwise_work::Part;

use crate::block::jobs::{Job, Then, Writes};
use crate::durability::sync_stage::range;
use crate::kernel::events::Event;
use crate::kernel::session::Resume;
use crate::kernel::simulation::Simulation;

/// How often the kernel looks for old pages (`dirty_writeback_centisecs`).
const LOOKS_NS: Nanos = 5_000_000_000;

impl Simulation<'_> {
    /// The kernel looks for old pages.
    pub(crate) fn look_for_old_pages(&mut self) {
        self.events.push(self.now + LOOKS_NS, Event::WriteBack);
        self.dependencies.give_up_waits(self.now, &mut self.events);
        self.look_for_old_pages_now();
    }

    /// The same, woken because there are too many dirty ones.
    pub(crate) fn look_for_old_pages_now(&mut self) {
        self.cache.begin_sweeps(self.now);
        for role in Role::ALL {
            self.sweep(role);
        }
    }

    /// Lets the flusher begin if there is too much for it to wait.
    pub(crate) fn wake_flusher(&mut self) {
        if self.cache.presses() {
            self.look_for_old_pages_now();
        }
    }

    /// Whether one more write of the kernel's own accord may be under way; one may always be.
    fn has_room(&mut self, role: Role, gently: bool) -> bool {
        let under_way = self.flusher.under_way(role);
        let (now, throttle) = (self.now, self.storage.throttle(role));
        under_way == 0 || under_way < throttle.limit(now, gently) && throttle.has_room(now, gently)
    }

    /// Keeps as many writes of a role under way as the flusher does.
    fn sweep(&mut self, role: Role) {
        while self.has_room(role, true) {
            let Some((sector, sectors)) = self.cache.next_sweep(role) else {
                return;
            };
            self.send_behind(role, sector, sectors);
        }
    }

    /// A session gives dirty pages to the device; whether it can go on at once.
    pub(crate) fn give_back(&mut self, index: u32, role: Role, sector: u64, sectors: u32) -> bool {
        let end = sector + u64::from(sectors);
        while self.has_room(role, false) {
            let Some((sector, sectors)) = self.cache.next_dirty(role, sector, end) else {
                return true;
            };
            self.send_behind(role, sector, sectors);
        }
        self.session(index).resume = Resume::Retry;
        self.set_activity(index, Part::Write);
        self.flusher.giving.push_back(index);
        self.block(index)
    }

    fn send_behind(&mut self, role: Role, sector: u64, sectors: u32) {
        let job = self
            .jobs
            .add(Job::new(Then::Sweep(role), Writes::None, role));
        let sent = self
            .storage
            .send_behind(self.now, job, role, sector, sectors);
        self.jobs.get(job).pending = sent;
        self.cache.sent(sectors);
        self.flusher.sent(job, role, sector, sectors);
    }

    /// Lets a sync wait for those writes of its files that are under way; how many.
    pub(crate) fn await_write_back(&mut self, sync: u32) -> u32 {
        let job = *self.jobs.get(sync);
        let Writes::Script(script) = job.writes else {
            return 0;
        };
        let sectors = range(&self.program.work.scripts[script as usize]);
        self.flusher.wait_for(sync, job.role, sectors)
    }

    /// A write of the kernel's own accord is done.
    pub(crate) fn swept(&mut self, role: Role, job: u32) {
        if let Some(sectors) = self.flusher.done(job) {
            self.cache.written(sectors);
        }
        while let Some(sync) = self.flusher.next_waiting(job) {
            self.answer(sync);
        }
        if self.cache.presses() {
            self.cache.begin_sweeps(self.now);
        }
        for session in std::mem::take(&mut self.flusher.giving) {
            self.resume(session);
        }
        self.sweep(role);
        while !self.cache.is_full() {
            let Some(session) = self.flusher.throttled.pop_front() else {
                return;
            };
            self.resume(session);
        }
    }
}
