//! The writes that a power cut would undo, oldest first, each with the bytes it replaced.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use tierwise_device::random::SplitMix;
use tierwise_device::{Nanos, SECTOR_BYTES};

use crate::byte_store::ByteStore;

/// The effect of a power cut on a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct CutReport {
    /// Writes that were not on the medium, those in flight among them.
    pub unflushed_writes: u64,
    /// Sectors that these writes touched.
    pub unflushed_sectors: u64,
    /// Number of these sectors with the content of one of the writes.
    pub kept_sectors: u64,
    /// Number of these sectors with their content from before.
    pub lost_sectors: u64,
    /// Writes of which some sectors were kept and some lost.
    pub torn_writes: u64,
    /// Requests that were inside, and failed.
    pub failed_requests: u64,
}

/// Progress of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteProgress {
    InFlight,
    /// Completed at a time, between two flushes.
    Completed {
        at: Nanos,
        epoch: u64,
    },
    Durable,
}

/// Whole sectors that one write replaced; a durable one no longer holds what it replaced.
struct UndoRecord {
    sectors: Range<u64>,
    old: Vec<u8>,
    state: WriteProgress,
}

impl UndoRecord {
    fn old_sector(&self, sector: u64) -> &[u8] {
        let start = ((sector - self.sectors.start) * SECTOR_BYTES) as usize;
        &self.old[start..start + SECTOR_BYTES as usize]
    }

    /// Gives back the memory of the bytes that no cut needs any more.
    fn make_durable(&mut self) -> Vec<u8> {
        self.state = WriteProgress::Durable;
        std::mem::take(&mut self.old)
    }
}

/// The log. Records are numbered; the first ones leave when they are durable.
#[derive(Default)]
pub(crate) struct PowerCutUndoLog {
    first: u64,
    records: VecDeque<UndoRecord>,
    epoch: u64,
    completed_bytes: u64,
    /// Memory for bytes that later writes replace, so that a write allocates none.
    spare: Vec<Vec<u8>>,
}

/// Most spare pieces, and the largest of them, in bytes.
const SPARE_PIECES: usize = 1024;
const SPARE_BYTES: usize = 64 << 10;

impl PowerCutUndoLog {
    /// Bytes of completed writes that are not durable.
    pub fn completed_bytes(&self) -> u64 {
        self.completed_bytes
    }

    /// Enters a write with the bytes it replaces, and returns its number.
    pub fn push(&mut self, sectors: Range<u64>, replaced: &[u8]) -> u64 {
        let state = WriteProgress::InFlight;
        let mut old = self.spare.pop().unwrap_or_default();
        old.extend_from_slice(replaced);
        self.records.push_back(UndoRecord {
            sectors,
            old,
            state,
        });
        self.first + self.records.len() as u64 - 1
    }

    /// Enters a range whose content is durable from now on, whatever was written there before.
    pub fn push_durable(&mut self, sectors: Range<u64>) {
        let number = self.push(sectors, &[]);
        self.make_durable(number);
    }

    /// A write is completed, and volatile.
    pub fn complete(&mut self, number: u64, at: Nanos) {
        let record = &mut self.records[(number - self.first) as usize];
        let epoch = self.epoch;
        record.state = WriteProgress::Completed { at, epoch };
        self.completed_bytes += record.old.len() as u64;
    }

    /// A write is completed, and on the medium.
    pub fn make_durable(&mut self, number: u64) {
        let old = self.records[(number - self.first) as usize].make_durable();
        keep_spare_buffer(&mut self.spare, old);
        self.forget();
    }

    /// A flush arrives; returns the argument for [`PowerCutUndoLog::complete_flush`].
    pub fn start_flush(&mut self) -> u64 {
        self.epoch += 1;
        self.epoch - 1
    }

    /// A flush completes: writes completed when it arrived are durable.
    pub fn complete_flush(&mut self, flushed: u64) {
        for record in &mut self.records {
            if matches!(record.state, WriteProgress::Completed { epoch, .. } if epoch <= flushed) {
                self.completed_bytes -= record.old.len() as u64;
                keep_spare_buffer(&mut self.spare, record.make_durable());
            }
        }
        self.forget();
    }

    /// Makes durable the writes completed before a time, and the oldest beyond a number of bytes.
    pub fn write_back(&mut self, before: Nanos, most_bytes: u64) {
        for record in &mut self.records {
            let WriteProgress::Completed { at, .. } = record.state else {
                continue;
            };
            if at >= before && self.completed_bytes <= most_bytes {
                break;
            }
            self.completed_bytes -= record.old.len() as u64;
            keep_spare_buffer(&mut self.spare, record.make_durable());
        }
        self.forget();
    }

    fn forget(&mut self) {
        while self
            .records
            .front()
            .is_some_and(|record| record.state == WriteProgress::Durable)
        {
            self.records.pop_front();
            self.first += 1;
        }
    }

    /// Undoes every write that is not durable, except for the sectors that fate keeps, and empties the log.
    ///
    /// From the newest to the oldest: the bytes that a write replaced are those of an older one, until that
    /// is undone too. A sector that a write keeps, or a durable one wrote, is settled: nothing older matters.
    pub fn cut(&mut self, store: &dyn ByteStore, fate: &mut UnflushedFate) -> CutReport {
        let mut report = CutReport::default();
        let mut unsettled = self.unflushed_sectors();
        for record in self.records.drain(..).rev() {
            if record.state == WriteProgress::Durable {
                let settled: Vec<u64> = unsettled.range(record.sectors).copied().collect();
                for sector in settled {
                    unsettled.remove(&sector);
                }
                continue;
            }
            let (kept, lost) = undo_write(&record, &mut unsettled, store, fate);
            report.unflushed_writes += 1;
            report.kept_sectors += kept;
            report.torn_writes += u64::from(kept > 0 && lost > 0);
        }
        report.lost_sectors = unsettled.len() as u64;
        report.unflushed_sectors = report.kept_sectors + report.lost_sectors;
        *self = Self::default();
        report
    }

    fn unflushed_sectors(&self) -> BTreeSet<u64> {
        let unflushed = self
            .records
            .iter()
            .filter(|record| record.state != WriteProgress::Durable);
        unflushed
            .flat_map(|record| record.sectors.clone())
            .collect()
    }
}

fn keep_spare_buffer(spare: &mut Vec<Vec<u8>>, mut piece: Vec<u8>) {
    if spare.len() < SPARE_PIECES && (1..=SPARE_BYTES).contains(&piece.capacity()) {
        piece.clear();
        spare.push(piece);
    }
}

/// Undoes one write; returns how many sectors it keeps and how many it loses.
fn undo_write(
    record: &UndoRecord,
    unsettled: &mut BTreeSet<u64>,
    store: &dyn ByteStore,
    fate: &mut UnflushedFate,
) -> (u64, u64) {
    let (mut kept, mut lost) = (0, 0);
    let write = fate.of_write();
    for sector in record.sectors.clone() {
        if !unsettled.contains(&sector) {
            continue;
        }
        if fate.keeps_sector(write) {
            unsettled.remove(&sector);
            kept += 1;
        } else {
            store.write(sector * SECTOR_BYTES, record.old_sector(sector));
            lost += 1;
        }
    }
    (kept, lost)
}

// Which unflushed writes survive when the power goes.

/// Draws the fate of each unflushed write, and of each of its sectors.
pub(crate) enum UnflushedFate {
    /// All is lost.
    Lost,
    /// Of each write nothing, everything, or a random half of its sectors reaches the medium.
    Random(SplitMix),
}

/// The fate of one write.
#[derive(Clone, Copy)]
pub(crate) enum WriteFate {
    Lost,
    Kept,
    Torn,
}

impl UnflushedFate {
    /// Nothing is kept without a seed; a seed decides which subset is kept.
    pub fn new(keep_random: Option<u64>) -> Self {
        keep_random.map_or(Self::Lost, |seed| Self::Random(SplitMix::new(seed)))
    }

    /// Draws for the next write: a drive has written it, has not, or was about to, each one time in three.
    pub fn of_write(&mut self) -> WriteFate {
        match self {
            Self::Lost => WriteFate::Lost,
            Self::Random(random) => match random.draw() % 3 {
                0 => WriteFate::Lost,
                1 => WriteFate::Kept,
                _ => WriteFate::Torn,
            },
        }
    }

    /// Draws for the next sector of a write.
    pub fn keeps_sector(&mut self, write: WriteFate) -> bool {
        match (write, self) {
            (WriteFate::Torn, Self::Random(random)) => random.draw() & 1 == 1,
            (WriteFate::Kept, _) => true,
            _ => false,
        }
    }
}
