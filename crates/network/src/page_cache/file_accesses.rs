//! File accesses of sessions: hits, buffered writes, synchronous and asynchronous requests.
//!
//! Left out: read-ahead of another size than recorded, and pages read ahead and never used.

use tierwise_device::Op;
use tierwise_device::random::mix_bits;
use tierwise_recording::Role;
use tierwise_work::{Mechanism, TimeCategory};

use crate::block::storage::RequestOwner;
use crate::kernel::clock::TaskId;
use crate::kernel::machine::Machine;
use crate::kernel::task::{AsyncRequestWait, RequestWait, SubmittedRequest, TaskHandle};

/// Read-ahead of the kernel (`read_ahead_kb`): 128 KiB, in sectors.
const READ_AHEAD_SECTORS: u64 = 256;

impl TaskHandle<'_> {
    /// Reads pages that the recorded page cache did not hold.
    pub(crate) async fn read(&self, role: Role, sector: u64, sectors: u32) {
        let hit = self.machine().is_hit_now(self.id, role, sector);
        if hit {
            let cpu = self.program.work.read_cpu;
            let spared_ns = (cpu.device_ns - cpu.cached_ns).max(0.0);
            self.change(|task| task.spared_ns += spared_ns as u64);
        }
        if !hit && !self.await_own(role, sector, sectors).await {
            self.request(role, Op::Read, sector, sectors).await;
        }
    }

    /// Reads pages that the recorded page cache held; a smaller one has evicted some.
    pub(crate) async fn read_cached(&self, role: Role, sector: u64, sectors: u32) {
        self.machine().read_evicted(self.id, role, sector, sectors);
        self.await_own(role, sector, sectors).await;
    }

    /// Writes past the page cache.
    pub(crate) async fn write_through(&self, role: Role, sector: u64, sectors: u32) {
        self.request(role, Op::Write, sector, sectors).await;
    }

    /// Writes into the page cache, once few enough pages are dirty.
    pub(crate) async fn write(&self, role: Role, sector: u64, sectors: u32) {
        let limited = !self.program.is_off(Mechanism::DirtyLimit);
        while limited && self.machine().throttle(self.id) {
            self.block(TimeCategory::Write).await;
        }
        let mut machine = self.machine();
        let now = machine.clock.now();
        machine.pages.dirty.write(now, role, sector, sectors);
        machine.wake_flusher();
    }

    /// Waits for all asynchronous requests.
    pub(crate) async fn drain(&self) {
        let any = self.change(|task| {
            task.async_wait = match task.submitted.is_empty() {
                true => AsyncRequestWait::Nothing,
                false => AsyncRequestWait::All,
            };
            task.async_wait == AsyncRequestWait::All
        });
        if any {
            self.block(TimeCategory::Write).await;
        }
    }

    /// Waits for asynchronous requests of its own that overlap a range; whether there were any.
    async fn await_own(&self, role: Role, sector: u64, sectors: u32) -> bool {
        let end = sector + u64::from(sectors);
        let waits = self.change(|task| {
            let waits = task
                .submitted
                .iter()
                .any(|submission| submission.overlaps(role, sector, end));
            if waits {
                task.async_wait = AsyncRequestWait::Range(role, sector, end);
            }
            waits
        });
        if waits {
            self.block(TimeCategory::Read).await;
        }
        waits
    }

    /// Sends a request and waits for it.
    async fn request(&self, role: Role, op: Op, sector: u64, sectors: u32) {
        let activity = match op {
            Op::Read => TimeCategory::Read,
            _ => TimeCategory::Write,
        };
        self.machine().send_for(self.id, role, op, sector, sectors);
        if op == Op::Read {
            self.machine().insert_pages(sectors);
        }
        self.await_requests(RequestWait::All, activity).await;
    }
}

impl SubmittedRequest {
    fn overlaps(&self, role: Role, first: u64, end: u64) -> bool {
        self.role == role && self.sector < end && first < self.sector + u64::from(self.sectors)
    }
}

impl Machine<'_> {
    /// Whether the engine's own buffer, which is larger, answers a read; this spares the processor time of the call.
    pub(crate) fn is_buffered(
        &mut self,
        id: TaskId,
        role: Role,
        sector: u64,
        spared_ns: f64,
    ) -> bool {
        let Some(buffer) = self.pages.hits.buffer else {
            return false;
        };
        let task = self.task(id);
        let hit = buffer.is_hit(task.reuse.buffer, || {
            draw_for_read(id, task.cycle, role, sector)
        });
        task.spared_ns += if hit { spared_ns as u64 } else { 0 };
        hit
    }

    /// Whether a recorded hit is one here too, for a session that waits for no request of its own.
    pub(crate) fn is_plain_hit(&mut self, id: TaskId, role: Role, sector: u64) -> bool {
        self.task(id).submitted.is_empty() && self.stays_hit(id, role, sector)
    }

    fn stays_hit(&mut self, id: TaskId, role: Role, sector: u64) -> bool {
        let task = self.task(id);
        let (reuse, cycle) = (task.reuse.cache, task.cycle);
        let hits = &self.pages.hits;
        hits.is_hit(true, reuse, || draw_for_read(id, cycle, role, sector))
    }

    /// Whether a recorded miss is a hit with this size of memory.
    fn is_hit_now(&mut self, id: TaskId, role: Role, sector: u64) -> bool {
        let now = self.clock.now();
        let task = self.task(id);
        let (reuse, cycle) = (task.reuse.cache, task.cycle);
        let cached = self.program.work.cached_roles.contains(&role)
            && !self.program.is_off(Mechanism::WarmReads);
        let hits = &mut self.pages.hits;
        hits.is_hit(false, reuse, || draw_for_read(id, cycle, role, sector))
            || (cached && hits.is_in_memory(now, cycle > 0))
    }

    /// Reads what a smaller page cache has evicted. Who goes on where its last such read ended reads ahead (Linux
    /// mm/readahead.c).
    fn read_evicted(&mut self, id: TaskId, role: Role, sector: u64, sectors: u32) {
        if self.stays_hit(id, role, sector) {
            return;
        }
        let last = self.task(id).evicted_read;
        let end = sector + u64::from(sectors);
        let goes_on = last.filter(|last| (last.0, last.1) == (role, sector));
        let from = goes_on.map_or(sector, |last| last.2);
        let mut until = from.max(end);
        if goes_on.is_some() && until == end {
            until += READ_AHEAD_SECTORS;
        }
        self.task(id).evicted_read = Some((role, end, until));
        for (first, end) in [(from, from.max(end)), (from.max(end), until)] {
            if first < end {
                self.submit(id, role, first, (end - first) as u32, false);
            }
        }
    }

    /// Notes pages read into the cache.
    fn insert_pages(&mut self, sectors: u32) {
        self.pages.dirty.read(sectors);
        self.wake_flusher();
    }

    /// Submits an asynchronous request.
    pub(crate) fn submit(
        &mut self,
        id: TaskId,
        role: Role,
        sector: u64,
        sectors: u32,
        write: bool,
    ) {
        if !write && (self.is_buffered(id, role, sector, 0.0) || self.is_hit_now(id, role, sector))
        {
            return;
        }
        let op = if write { Op::Write } else { Op::Read };
        let number = self.task(id).submissions;
        let (owner, place) = (RequestOwner::Submission(id, number), (sector, sectors));
        let outstanding = self.storage.send(&mut self.clock, owner, role, op, place);
        let task = self.task(id);
        task.submissions += 1;
        task.submitted.push(SubmittedRequest {
            number,
            role,
            sector,
            sectors,
            outstanding,
        });
        if !write {
            self.insert_pages(sectors);
        }
    }

    /// A part of an asynchronous request is complete.
    pub(crate) fn complete_submission(&mut self, id: TaskId, number: u32) {
        let task = self.task(id);
        let submitted = &mut task.submitted;
        if let Some(submission) = submitted
            .iter_mut()
            .find(|submission| submission.number == number)
        {
            submission.outstanding -= 1;
        }
        submitted.retain(|submission| submission.outstanding > 0);
        let continues = match task.async_wait {
            AsyncRequestWait::Nothing => false,
            AsyncRequestWait::All => submitted.is_empty(),
            AsyncRequestWait::Range(role, first, end) => !submitted
                .iter()
                .any(|submission| submission.overlaps(role, first, end)),
        };
        if continues {
            task.async_wait = AsyncRequestWait::Nothing;
            self.clock.wake(id);
        }
    }
}

/// A number from 0 to 1 for a read in a cycle of a task, the same in each scenario.
fn draw_for_read(id: TaskId, cycle: u32, role: Role, sector: u64) -> f64 {
    let turn = (u64::from(id.0) << 32) | u64::from(cycle);
    let place = ((role as u64) << 56) ^ sector;
    (mix_bits(place ^ turn.rotate_left(20)) >> 11) as f64 / (1_u64 << 53) as f64
}
