//! The log: appended and durable positions, the leader of a flush, waiting sessions.

use std::collections::VecDeque;

use tierwise_device::Nanos;
use tierwise_work::LogRules;

use crate::block::layout::MAX_SECTORS;
use crate::kernel::session::NONE;

const SECTOR_BYTES: u64 = 512;

/// The log's replica, if there is one.
#[derive(Debug, Default)]
pub(crate) struct LogReplica {
    /// Log position sent to it.
    pub(crate) sent: u64,
    /// Durable position of the replica.
    pub(crate) durable: u64,
    /// The session that writes it, while it waits for more.
    pub(crate) idle_thread: Option<u32>,
    /// Whether commits wait for it, and which sessions do.
    pub(crate) is_synchronous: bool,
    pub(crate) waiting: Vec<u32>,
}

/// The state of the log.
#[derive(Debug)]
pub(crate) struct Log<'a> {
    pub(crate) rules: &'a LogRules,
    /// Processor time of a leader before its flush, with warm caches.
    pub(crate) leader_ns: Nanos,
    /// Processor time of a leader after its flush, without the effect of the wait.
    pub(crate) release_ns: Nanos,
    pub(crate) inserted: u64,
    /// Position at which the current file begins.
    begins: u64,
    /// Number of recorded flushes, the first ones, that did not extend the file.
    plain: u32,
    pub(crate) flushed: u64,
    /// The leader that flushes or is about to, or [`NONE`].
    pub(crate) holder: u32,
    pub(crate) waiting: VecDeque<u32>,
    /// Its replica.
    pub(crate) replica: LogReplica,
    /// Whether the engine's own thread, which is no session, flushes now.
    pub(crate) flusher_at_work: bool,
}

impl<'a> Log<'a> {
    /// A log with these rules, and a replica that commits wait for or not.
    pub(crate) fn new(rules: &'a LogRules, waits_for_replica: bool) -> Self {
        let plain = rules.scripts.iter();
        let plain = plain.take_while(|script| script.journal_writes.is_empty());
        Self {
            rules,
            leader_ns: rules.leader_cpu_ns.into(),
            release_ns: rules.release_cpu_ns.into(),
            inserted: 0,
            begins: 0,
            plain: plain.count() as u32,
            flushed: 0,
            holder: NONE,
            waiting: VecDeque::with_capacity(64),
            replica: LogReplica {
                is_synchronous: waits_for_replica,
                ..LogReplica::default()
            },
            flusher_at_work: false,
        }
    }

    /// Whether a flush is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.holder != NONE || self.flusher_at_work
    }

    /// Appends from the beginning of the file from now on.
    pub(crate) fn restart_file(&mut self) {
        self.begins = self.inserted;
    }

    /// Range of recorded flushes to draw from, as first and count: those that extend the file or not, where
    /// that is known.
    pub(crate) fn scripts(&self, grows: Option<bool>) -> (u32, u32) {
        let all = self.rules.scripts.len() as u32;
        match grows {
            Some(true) if self.plain < all => (self.plain, all - self.plain),
            Some(false) if self.plain > 0 => (0, self.plain),
            _ => (0, all),
        }
    }

    /// Writes of whole pages for the bytes between two positions: first sector and sectors within the role. Two parts
    /// where the log wraps.
    pub(crate) fn writes(&self, from: u64, to: u64) -> [(u64, u32); 2] {
        let page = u64::from(self.rules.page_bytes.max(512)) / SECTOR_BYTES * SECTOR_BYTES;
        let all = (self.rules.sectors.min(MAX_SECTORS) * SECTOR_BYTES / page).max(1) * page;
        let (from, to) = (
            from.saturating_sub(self.begins),
            to.saturating_sub(self.begins),
        );
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

#[cfg(test)]
mod tests {
    use super::*;
    use tierwise_work::Grouping;

    #[test]
    fn whole_pages_are_written_round_and_round() {
        let rules = LogRules {
            grouping: Grouping::Alone,
            scripts: Vec::new(),
            page_bytes: 8192,
            first_sector: 100,
            sectors: 64,
            leader_cpu_ns: 0,
            release_cpu_ns: 0,
            wake_ns: 0,
            recheck_ns: 0,
            flusher_period_ns: None,
            commit_delay: None,
        };
        let log = Log::new(&rules, false);
        assert_eq!(log.writes(100, 300), [(100, 16), (100, 0)]);
        assert_eq!(log.writes(8191, 8193), [(100, 32), (100, 0)]);
        assert_eq!(log.writes(3 * 8192, 5 * 8192), [(148, 16), (100, 16)]);
    }
}
