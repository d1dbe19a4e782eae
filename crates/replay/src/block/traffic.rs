//! I/O counts of each role, and its requests under way.

use tierwise_device::{Nanos, Op, Request};
use tierwise_recording::Role;

use crate::api::outcome::RoleIo;
use crate::block::writeback_throttle::WritebackThrottle;

const SECTOR_BYTES: u64 = 512;

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
    throttle: WritebackThrottle,
}

impl Traffic {
    pub(crate) fn new(throttle: WritebackThrottle) -> Self {
        Self {
            throttle,
            ..Self::default()
        }
    }

    /// Counts a request.
    pub(crate) fn note_sent(&mut self, now: Nanos, request: &Request) {
        match request.op {
            Op::Read => {
                self.reads += 1;
                self.throttle.read_sent(now);
                self.read_sectors += u64::from(request.sectors);
            }
            Op::Flush => {
                self.flushes += 1;
            }
            Op::Write | Op::Discard => {
                self.writes += 1;
                self.throttle.write_sent(now);
                self.written_sectors += u64::from(request.sectors);
            }
        }
        if self.under_way == 0 {
            self.busy_since = now;
        }
        self.under_way += 1;
    }

    /// Notes that a request sent at `sent_at` is complete.
    pub(crate) fn note_completed(&mut self, now: Nanos, op: Op, sent_at: Nanos) {
        match op {
            Op::Read => self.throttle.read_done(now, sent_at),
            Op::Write | Op::Discard => self.throttle.write_done(now),
            Op::Flush => {}
        }
        self.under_way -= 1;
        if self.under_way == 0 {
            self.busy_ns += now - self.busy_since;
        }
    }

    /// Limit of writes under way that nobody waits for at once.
    pub(crate) fn throttle(&mut self) -> &mut WritebackThrottle {
        &mut self.throttle
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
