//! Requests to block devices, from issue to completion.

use std::collections::HashMap;

use tierwise_recording::{Block, BlockOp, NONE};

use crate::event::Request;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Letters {
    op: BlockOp,
    preflush: bool,
    fua: bool,
    sync: bool,
    meta: bool,
}

/// Letters are: F if a flush comes first; the operation, R W D DE F or N; then F for forced unit access, A
/// for readahead, S for sync, M for metadata.
fn letters(flags: [u8; 8]) -> Option<Letters> {
    let end = flags.iter().position(|&byte| byte == 0).unwrap_or(8);
    let text = &flags[..end];
    let (preflush, rest) = match text {
        [b'F', rest @ ..] if matches!(rest.first(), Some(b'W' | b'F' | b'R' | b'N' | b'D')) => {
            (true, rest)
        }
        text => (false, text),
    };
    let (&op, after) = rest.split_first()?;
    let op = match op {
        b'R' => BlockOp::Read,
        b'W' => BlockOp::Write,
        b'D' => BlockOp::Discard,
        b'F' => BlockOp::Flush,
        b'N' if preflush => BlockOp::Flush,
        _ => return None,
    };
    Some(Letters {
        op,
        preflush,
        fua: after.contains(&b'F'),
        sync: after.contains(&b'S'),
        meta: after.contains(&b'M'),
    })
}

/// What a request does, by the kernel's letters.
pub(crate) fn operation(flags: [u8; 8]) -> Option<BlockOp> {
    letters(flags).map(|letters| letters.op)
}

/// Requests of one burst.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    ranges: Vec<DeviceRange>,
    /// In order of issue; those under way have no completion yet.
    pub rows: Vec<Block>,
    underway: HashMap<(u32, u64, BlockOp), usize>,
}

/// What issue and completion of a request have in common; a flush has another sector in each.
fn key(request: &Request, op: BlockOp) -> (u32, u64, BlockOp) {
    let sector = if op == BlockOp::Flush {
        0
    } else {
        request.sector
    };
    (request.device, sector, op)
}

impl Blocks {
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
    pub(super) fn issue(&mut self, time_ns: u64, request: &Request, thread: u32) -> Option<usize> {
        let letters = letters(request.flags)?;
        let range = self.range(request, letters.op)?;
        let index = self.rows.len();
        self.underway.insert(key(request, letters.op), index);
        self.rows.push(Block {
            device: range.device,
            sector: range.within(request.sector),
            sectors: request.sectors,
            op: letters.op,
            fua: letters.fua,
            preflush: letters.preflush && letters.op != BlockOp::Flush,
            sync: letters.sync,
            meta: letters.meta,
            issued_ns: time_ns,
            completed_ns: 0,
            thread,
            file: NONE,
        });
        Some(index)
    }

    fn range(&self, request: &Request, op: BlockOp) -> Option<DeviceRange> {
        DeviceRange::of(&self.ranges, request.device, request.sector, op)
    }

    pub(super) fn complete(&mut self, time_ns: u64, request: &Request) {
        if let Some(op) = operation(request.flags)
            && self.range(request, op).is_some()
            && let Some(index) = self.underway.remove(&key(request, op))
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

    fn read(text: &str) -> Option<Letters> {
        let mut flags = [0; 8];
        flags[..text.len()].copy_from_slice(text.as_bytes());
        letters(flags)
    }

    #[test]
    fn a_volume_in_two_places_has_sectors_of_its_own() {
        let place = |first_sector, offset_sectors| DeviceRange {
            number: 8 << 20,
            first_sector,
            sectors: 100,
            offset_sectors,
            device: 3,
        };
        let mut blocks = Blocks::new(vec![place(5000, 0), place(2000, 100)]);
        let mut sector_of = |sector| {
            let request = Request {
                device: 8 << 20,
                sector,
                sectors: 8,
                flags: *b"W\0\0\0\0\0\0\0",
            };
            let row = blocks.issue(1, &request, 0)?;
            Some((blocks.rows[row].device, blocks.rows[row].sector))
        };
        assert_eq!(sector_of(5008), Some((3, 8)));
        assert_eq!(sector_of(2008), Some((3, 108)));
        assert_eq!(sector_of(2100), None);
    }

    #[test]
    fn letters_are_told_apart() {
        let plain = Letters {
            op: BlockOp::Write,
            preflush: false,
            fua: false,
            sync: false,
            meta: false,
        };
        assert_eq!(read("W"), Some(plain));
        let journal = Letters {
            preflush: true,
            fua: true,
            sync: true,
            meta: true,
            ..plain
        };
        assert_eq!(read("FWFSM"), Some(journal));
        let flush = Letters {
            op: BlockOp::Flush,
            preflush: true,
            ..plain
        };
        assert_eq!(read("FF"), Some(flush));
        assert_eq!(read("F").map(|letters| letters.op), Some(BlockOp::Flush));
        assert_eq!(read("RA").map(|letters| letters.op), Some(BlockOp::Read));
        assert_eq!(read("DE").map(|letters| letters.op), Some(BlockOp::Discard));
        assert_eq!(read("N"), None);
        assert_eq!(read(""), None);
    }
}
