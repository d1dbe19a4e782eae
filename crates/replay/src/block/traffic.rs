//! I/O counts of each role, and its requests under way.

use tierwise_device::{Nanos, Op, Request};
use tierwise_recording::Role;

use crate::api::outcome::RoleIo;
const SECTOR_BYTES: u64 = 512;
/// Writes that nobody waits for at once, of syncs and of the flusher, that may be under way on a partition: a half and
/// a quarter of 96, which is three quarters of a queue of 128 (Linux block/blk-wbt.c, `nr_requests`). The kernel allows
/// fewer beside reads.
const SYNC_WRITES: u32 = 48;
const FLUSHER_WRITES: u32 = 24;

/// The requests of one role.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    reads: u64,
    writes: u64,
    flushes: u64,
    read_sectors: u64,
    written_sectors: u64,
    under_way: u32,
    busy_since: Nanos,
    busy_ns: u64,
    writes_under_way: u32,
}

impl Traffic {
    /// Counts a request.
    pub(crate) fn note_sent(&mut self, now: Nanos, request: &Request) {
        match request.op {
            Op::Read => {
                self.reads += 1;
                self.read_sectors += u64::from(request.sectors);
            }
            Op::Flush => {
                self.flushes += 1;
            }
            Op::Write | Op::Discard => {
                self.writes += 1;
                self.writes_under_way += 1;
                self.written_sectors += u64::from(request.sectors);
            }
        }
        if self.under_way == 0 {
            self.busy_since = now;
        }
        self.under_way += 1;
    }

    /// Notes that a request is complete.
    pub(crate) fn note_completed(&mut self, now: Nanos, op: Op) {
        if matches!(op, Op::Write | Op::Discard) {
            self.writes_under_way -= 1;
        }
        self.under_way -= 1;
        if self.under_way == 0 {
            self.busy_ns += now - self.busy_since;
        }
    }

    /// Whether another write may be sent that nobody waits for at once; `gently`: by the flusher.
    pub(crate) fn has_room(&self, gently: bool) -> bool {
        self.writes_under_way < if gently { FLUSHER_WRITES } else { SYNC_WRITES }
    }

    /// Discards counts until `now`.
    pub(crate) fn reset(&mut self, now: Nanos) {
        (self.reads, self.writes, self.flushes) = (0, 0, 0);
        (self.read_sectors, self.written_sectors) = (0, 0);
        (self.busy_ns, self.busy_since) = (0, now);
    }

    /// The role's I/O, if there was any.
    pub(crate) fn io(&self, now: Nanos, role: Role) -> Option<RoleIo> {
        (self.reads + self.writes + self.flushes > 0).then(|| RoleIo {
            role,
            reads: self.reads,
            writes: self.writes,
            flushes: self.flushes,
            read_bytes: self.read_sectors * SECTOR_BYTES,
            written_bytes: self.written_sectors * SECTOR_BYTES,
            busy_s: self.busy_until(now) as f64 / 1e9,
        })
    }

    fn busy_until(&self, now: Nanos) -> u64 {
        let rest = if self.under_way > 0 {
            now - self.busy_since
        } else {
            0
        };
        self.busy_ns + rest
    }
}
