//! The log: how far it was appended, how far it is durable, who flushes and who waits.

use std::collections::VecDeque;

use tierwise_device::Nanos;
use tierwise_work::{CpuCost, LogRules};

use crate::block::layout::MOST_SECTORS;
use crate::kernel::session::NONE;

const SECTOR_BYTES: u64 = 512;

/// The state of a second copy of the log, if there is one.
#[derive(Debug, Default)]
pub(crate) struct LogReplica {
    /// How far its maker has been told of the log.
    pub(crate) sent: u64,
    /// How far it is durable.
    pub(crate) durable: u64,
    /// Its maker, while it waits for more.
    pub(crate) idle_thread: Option<u32>,
    /// Whether commits wait for it, and who waits.
    pub(crate) is_synchronous: bool,
    pub(crate) waiting: Vec<u32>,
}

/// The state of the log.
#[derive(Debug)]
pub(crate) struct Log<'a> {
    pub(crate) rules: &'a LogRules,
    /// What the leader runs before its flush, had it been warm.
    pub(crate) leader_ns: Nanos,
    /// What the leader runs when its flush is done, had it not waited.
    pub(crate) release_ns: Nanos,
    pub(crate) inserted: u64,
    /// Where the log that is written now begins.
    begins: u64,
    /// How many scripts are of logs that do not become longer: the first.
    plain: u32,
    pub(crate) flushed: u64,
    /// Who flushes, or is about to.
    pub(crate) holder: u32,
    pub(crate) waiting: VecDeque<u32>,
    /// Its second copy.
    pub(crate) replica: LogReplica,
    /// The engine's own thread flushes now; it is nobody's session.
    pub(crate) flusher_at_work: bool,
}

impl<'a> Log<'a> {
    /// A log by its rules, with a second copy that commits wait for or not; `cost` is that of
    /// idleness, `leader_ns` what its leaders run before a flush.
    pub(crate) fn new(
        rules: &'a LogRules,
        cost: CpuCost,
        leader_ns: Option<f64>,
        waits_for_replica: bool,
    ) -> Self {
        let after_ns = u64::from(rules.release_after_ns);
        let took_ns = f64::from(rules.release_cpu_ns);
        let plain = rules.scripts.iter();
        let plain = plain.take_while(|script| script.journal_writes.is_empty());
        Self {
            rules,
            leader_ns: leader_ns.unwrap_or(rules.leader_cpu_ns.into()) as Nanos,
            release_ns: cost.warm(took_ns, cost.after_wait(false, 0.0, after_ns)).0 as Nanos,
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

    /// Whether somebody flushes.
    pub(crate) fn is_busy(&self) -> bool {
        self.holder != NONE || self.flusher_at_work
    }

    /// What is appended from now on is written from the start of the file on.
    pub(crate) fn restart_file(&mut self) {
        self.begins = self.inserted;
    }

    /// The scripts of which one is drawn for a flush, first and number: where that is known, of those in which the file
    /// becomes longer, or does not.
    pub(crate) fn scripts(&self, grows: Option<bool>) -> (u32, u32) {
        let all = self.rules.scripts.len() as u32;
        match grows {
            Some(true) if self.plain < all => (self.plain, all - self.plain),
            Some(false) if self.plain > 0 => (0, self.plain),
            _ => (0, all),
        }
    }

    /// The device's writes for the bytes between two positions, whole pages: first sector and sectors, of the
    /// role's own space. In two parts where the log begins anew.
    pub(crate) fn writes(&self, from: u64, to: u64) -> [(u64, u32); 2] {
        let page = u64::from(self.rules.page_bytes.max(512)) / SECTOR_BYTES * SECTOR_BYTES;
        let all = (self.rules.sectors.min(MOST_SECTORS) * SECTOR_BYTES / page).max(1) * page;
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
            release_after_ns: 0,
            traced_ns: 0,
            wake_ns: 0,
            flusher_period_ns: None,
        };
        let log = Log::new(&rules, CpuCost::default(), None, false);
        assert_eq!(log.writes(100, 300), [(100, 16), (100, 0)]);
        assert_eq!(log.writes(8191, 8193), [(100, 32), (100, 0)]);
        assert_eq!(log.writes(3 * 8192, 5 * 8192), [(148, 16), (100, 16)]);
    }
}
