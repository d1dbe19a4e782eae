//! Write-back: when the kernel writes dirty pages, and which sessions wait.
//!
//! Source: Linux. The flusher wakes every 5 s (`dirty_writeback_centisecs`) or is woken; `sync_file_range` starts the
//! same writes at once; a sync waits for writes of its files under way (`filemap_write_and_wait_range`). The number
//! of writes under way is limited (`block/storage.rs`).

use std::collections::VecDeque;

use tierwise_device::{Nanos, Op};
use tierwise_recording::Role;
use tierwise_work::TimeCategory;

use crate::block::storage::RequestOwner;
use crate::kernel::clock::TaskId;
use crate::kernel::machine::Machine;
use crate::kernel::task::TaskHandle;

/// Interval of periodic write-back (`dirty_writeback_centisecs`).
const WRITE_BACK_INTERVAL_NS: Nanos = 5_000_000_000;

/// A write of the flusher under way.
#[derive(Debug)]
struct FlusherWrite {
    number: u32,
    role: Role,
    sector: u64,
    sectors: u32,
    /// Requests to the device that are not complete.
    outstanding: u32,
    /// Syncs that wait for it.
    awaited_by: Vec<TaskId>,
}

/// Writes under way and waiting sessions.
#[derive(Debug, Default)]
pub(crate) struct WriteBackFlusher {
    writing: Vec<FlusherWrite>,
    sent: u32,
    /// Sessions that wait to start more write-back.
    waiting_for_room: Vec<TaskId>,
    /// Writers blocked because too much is dirty.
    throttled: VecDeque<TaskId>,
}

impl WriteBackFlusher {
    /// Lets a sync wait for a role's writes under way between two sectors; their number.
    pub(crate) fn wait_for(&mut self, sync: TaskId, role: Role, (first, end): (u64, u64)) -> u32 {
        let ours = self.writing.iter_mut().filter(|writing| {
            let ends = writing.sector + u64::from(writing.sectors);
            writing.role == role && writing.sector < end && first < ends
        });
        ours.map(|writing| writing.awaited_by.push(sync)).count() as u32
    }

    /// One request of a write is complete; the write, if it was the last one.
    fn complete(&mut self, number: u32) -> Option<FlusherWrite> {
        let mut writing = self.writing.iter_mut();
        let at = writing.position(|writing| writing.number == number)?;
        self.writing[at].outstanding -= 1;
        (self.writing[at].outstanding == 0).then(|| self.writing.swap_remove(at))
    }
}

impl TaskHandle<'_> {
    /// The kernel's periodic write-back; also gives up waits for signals that do not come.
    pub(crate) async fn write_back_periodically(self) {
        loop {
            self.machine().give_up_signals();
            self.machine().start_write_back();
            self.sleep(WRITE_BACK_INTERVAL_NS, TimeCategory::Sleep)
                .await;
        }
    }

    /// Starts write-back of a range (`sync_file_range`); waits while too many writes are under way.
    pub(crate) async fn write_back(&self, role: Role, sector: u64, sectors: u32) {
        let end = sector + u64::from(sectors);
        while !self.machine().write_back_range(role, sector, end) {
            let id = self.id;
            self.machine().pages.flusher.waiting_for_room.push(id);
            self.block(TimeCategory::Write).await;
        }
    }
}

impl Machine<'_> {
    /// Starts write-back of pages that are too old or too many.
    pub(crate) fn start_write_back(&mut self) {
        self.pages.dirty.begin_write_back(self.clock.now());
        for role in Role::ALL {
            self.write_back_role(role);
        }
    }

    /// Starts write-back above the background limit.
    pub(crate) fn wake_flusher(&mut self) {
        if self.pages.dirty.over_background_limit() {
            self.start_write_back();
        }
    }

    /// Whether a writer must wait because too much is dirty; if so, write-back starts and will wake it.
    pub(crate) fn throttle(&mut self, writer: TaskId) -> bool {
        let full = self.pages.dirty.is_full();
        if full {
            self.pages.flusher.throttled.push_back(writer);
            self.start_write_back();
        }
        full
    }

    /// Whether one more write may be under way; the first always may. `gently`: for the flusher.
    fn may_write_back(&self, role: Role, gently: bool) -> bool {
        let mut writing = self.pages.flusher.writing.iter();
        self.storage.has_room(role, gently) || !writing.any(|writing| writing.role == role)
    }

    /// Sends a role's writes up to the flusher's limit.
    fn write_back_role(&mut self, role: Role) {
        while self.may_write_back(role, true) {
            let Some((sector, sectors)) = self.pages.dirty.next_write_back(role) else {
                return;
            };
            self.send_write_back(role, sector, sectors);
        }
    }

    /// Sends a range's writes up to the limit of callers; whether all were sent.
    fn write_back_range(&mut self, role: Role, first: u64, end: u64) -> bool {
        while self.may_write_back(role, false) {
            let Some((sector, sectors)) = self.pages.dirty.next_dirty(role, first, end) else {
                return true;
            };
            self.send_write_back(role, sector, sectors);
        }
        false
    }

    fn send_write_back(&mut self, role: Role, sector: u64, sectors: u32) {
        let number = self.pages.flusher.sent;
        self.pages.flusher.sent += 1;
        let owner = RequestOwner::WriteBack(role, number);
        let place = (sector, sectors);
        let outstanding = self
            .storage
            .send(&mut self.clock, owner, role, Op::Write, place);
        self.pages.dirty.sent(sectors);
        self.pages.flusher.writing.push(FlusherWrite {
            number,
            role,
            sector,
            sectors,
            outstanding,
            awaited_by: Vec::new(),
        });
    }

    /// A request of a write-back is complete.
    pub(crate) fn complete_write_back(&mut self, role: Role, number: u32) {
        let Some(writing) = self.pages.flusher.complete(number) else {
            return;
        };
        self.pages.dirty.written(writing.sectors);
        for sync in writing.awaited_by {
            self.complete_for(sync);
        }
        if self.pages.dirty.over_background_limit() {
            self.pages.dirty.begin_write_back(self.clock.now());
        }
        for session in self.pages.flusher.waiting_for_room.drain(..) {
            self.clock.wake(session);
        }
        self.write_back_role(role);
        // Those that find too much dirty again wait anew.
        if !self.pages.dirty.is_full() {
            for session in self.pages.flusher.throttled.drain(..) {
                self.clock.wake(session);
            }
        }
    }
}
