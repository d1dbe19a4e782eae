//! Which file lies where on a device.

use std::collections::BTreeMap;

/// Bytes of a file that lie together on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Index of the device among those of the recording.
    pub device: u32,
    /// First sector, counted from the start of the partition.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// Where in the file it begins.
    pub offset_bytes: u64,
}

/// A sector's file and the place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Index of the file.
    pub file: u32,
    /// Where in the file.
    pub offset_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    end: u64,
    file: u32,
    offset_bytes: u64,
}

/// All extents, without overlap; the latest one added wins.
#[derive(Debug, Default)]
pub(crate) struct Extents {
    pieces: BTreeMap<(u32, u64), Piece>,
}

impl Extents {
    pub(crate) fn insert(&mut self, file: u32, extent: Extent) {
        let end = extent.sector.saturating_add(extent.sectors);
        if end <= extent.sector {
            return;
        }
        self.clear(extent.device, extent.sector, end);
        let piece = Piece {
            end,
            file,
            offset_bytes: extent.offset_bytes,
        };
        self.pieces.insert((extent.device, extent.sector), piece);
    }

    /// Removes the parts of extents that overlap the range.
    fn clear(&mut self, device: u32, start: u64, end: u64) {
        if let Some((&(_, from), &piece)) = self.before(device, start)
            && piece.end > start
        {
            self.cut(device, from, piece, start, end);
        }
        let inside: Vec<(u64, Piece)> = self
            .pieces
            .range((device, start)..(device, end))
            .map(|(&(_, from), &piece)| (from, piece))
            .collect();
        for (from, piece) in inside {
            self.cut(device, from, piece, start, end);
        }
    }

    fn before(&self, device: u32, sector: u64) -> Option<(&(u32, u64), &Piece)> {
        let mut range = self.pieces.range((device, 0)..=(device, sector));
        range.next_back()
    }

    /// The parts of a piece outside of `start..end`.
    fn cut(&mut self, device: u32, from: u64, piece: Piece, start: u64, end: u64) {
        self.pieces.remove(&(device, from));
        if from < start {
            let head = Piece {
                end: start,
                ..piece
            };
            self.pieces.insert((device, from), head);
        }
        if piece.end > end {
            let tail = Piece {
                offset_bytes: piece.offset_bytes + (end - from) * 512,
                ..piece
            };
            self.pieces.insert((device, end), tail);
        }
    }

    /// The file that a sector belongs to.
    pub(crate) fn find(&self, device: u32, sector: u64) -> Option<Place> {
        let (&(_, from), piece) = self.before(device, sector)?;
        (sector < piece.end).then(|| Place {
            file: piece.file,
            offset_bytes: piece.offset_bytes + (sector - from) * 512,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(sector: u64, sectors: u64, offset_bytes: u64) -> Extent {
        Extent {
            device: 3,
            sector,
            sectors,
            offset_bytes,
        }
    }

    #[test]
    fn the_latest_wins_and_what_it_covers_is_cut() {
        let mut extents = Extents::default();
        extents.insert(1, extent(100, 100, 0));
        extents.insert(2, extent(120, 10, 8192));
        let found = |sector| {
            extents
                .find(3, sector)
                .map(|place| (place.file, place.offset_bytes))
        };
        assert_eq!(found(99), None);
        assert_eq!(found(100), Some((1, 0)));
        assert_eq!(found(119), Some((1, 19 * 512)));
        assert_eq!(found(121), Some((2, 8192 + 512)));
        assert_eq!(found(130), Some((1, 30 * 512)));
        assert_eq!(found(200), None);
        assert_eq!(extents.find(2, 121), None);
    }

    #[test]
    fn a_larger_extent_swallows_smaller_ones() {
        let mut extents = Extents::default();
        for i in 0..10 {
            extents.insert(i, extent(u64::from(i) * 10, 10, 0));
        }
        extents.insert(99, extent(5, 90, 0));
        let files: Vec<u32> = (0..100)
            .step_by(5)
            .filter_map(|sector| extents.find(3, sector))
            .map(|place| place.file)
            .collect();
        assert_eq!(files.first(), Some(&0));
        assert_eq!(files.last(), Some(&9));
        assert!(files[1..files.len() - 1].iter().all(|&file| file == 99));
    }
}
