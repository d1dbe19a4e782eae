//! Requests to block devices, from issue to completion.

use std::collections::HashMap;

use tierwise_recording::{Block, BlockOp, NONE};

use crate::trace_event::BlockRequest;

/// Maps sectors of a recorded device to those in block events; a volume may lie in several places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRange {
    /// `(major << 20) | minor` of the whole disk, as block events give it.
    pub number: u32,
    /// First sector on that disk.
    pub first_sector: u64,
    /// Number of sectors; 0 if that is not known.
    pub sectors: u64,
    /// Sector of the recorded device that lies there first.
    pub offset_sectors: u64,
    /// Index among the devices of the recording.
    pub device: u32,
}

impl DeviceRange {
    /// The one that a request is for. A flush has no sector: it belongs to the first partition of its disk
    /// until its file is known.
    pub(crate) fn of(ranges: &[Self], number: u32, sector: u64, op: BlockOp) -> Option<Self> {
        let mut ranges = ranges.iter();
        let found = match op {
            BlockOp::Flush => ranges.find(|range| range.number == number),
            _ => ranges.find(|range| range.holds(number, sector)),
        };
        found.copied()
    }

    /// A sector of the disk as one of the recorded device.
    pub(crate) fn within(&self, sector: u64) -> u64 {
        sector
            .saturating_sub(self.first_sector)
            .saturating_add(self.offset_sectors)
    }

    fn holds(&self, number: u32, sector: u64) -> bool {
        let end = match self.sectors {
            0 => u64::MAX,
            sectors => self.first_sector.saturating_add(sectors),
        };
        self.number == number && (self.first_sector..end).contains(&sector)
    }
}

/// Requests of one burst.
#[derive(Debug, Default)]
pub(super) struct BurstRequests {
    ranges: Vec<DeviceRange>,
    /// In order of issue; those under way have no completion yet.
    pub rows: Vec<Block>,
    underway: HashMap<(u32, u64, BlockOp), usize>,
}

/// What issue and completion of a request have in common; a flush has another sector in each.
fn request_key(request: &BlockRequest) -> (u32, u64, BlockOp) {
    let sector = match request.op {
        BlockOp::Flush => 0,
        _ => request.sector,
    };
    (request.device, sector, request.op)
}

impl BurstRequests {
    pub(super) fn new(ranges: Vec<DeviceRange>) -> Self {
        Self {
            ranges,
            ..Self::default()
        }
    }

    pub(super) fn ranges(&self) -> &[DeviceRange] {
        &self.ranges
    }

    /// A request was given to a device; its index if the device is a recorded one.
    pub(super) fn issue(
        &mut self,
        time_ns: u64,
        request: &BlockRequest,
        thread: u32,
    ) -> Option<usize> {
        let range = self.range(request)?;
        let index = self.rows.len();
        self.underway.insert(request_key(request), index);
        self.rows.push(Block {
            device: range.device,
            sector: range.within(request.sector),
            sectors: request.sectors,
            op: request.op,
            fua: request.fua,
            preflush: request.preflush && request.op != BlockOp::Flush,
            sync: request.sync,
            meta: request.meta,
            issued_ns: time_ns,
            completed_ns: 0,
            thread,
            file: NONE,
        });
        Some(index)
    }

    fn range(&self, request: &BlockRequest) -> Option<DeviceRange> {
        DeviceRange::of(&self.ranges, request.device, request.sector, request.op)
    }

    pub(super) fn complete(&mut self, time_ns: u64, request: &BlockRequest) {
        if self.range(request).is_some()
            && let Some(index) = self.underway.remove(&request_key(request))
        {
            self.rows[index].completed_ns = time_ns;
        }
    }

    /// Ends the burst: forgets what is under way.
    pub(super) fn take(&mut self) -> Vec<Block> {
        self.underway.clear();
        std::mem::take(&mut self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_in_two_places_has_sectors_of_its_own() {
        let place = |first_sector, offset_sectors| DeviceRange {
            number: 8 << 20,
            first_sector,
            sectors: 100,
            offset_sectors,
            device: 3,
        };
        let mut blocks = BurstRequests::new(vec![place(5000, 0), place(2000, 100)]);
        let mut sector_of = |sector| {
            let row = blocks.issue(1, &BlockRequest::of(8 << 20, sector, 8, "W"), 0)?;
            Some((blocks.rows[row].device, blocks.rows[row].sector))
        };
        assert_eq!(sector_of(5008), Some((3, 8)));
        assert_eq!(sector_of(2008), Some((3, 108)));
        assert_eq!(sector_of(2100), None);
    }
}
