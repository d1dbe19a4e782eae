//! Where the sectors of an array lie on its members.
//!
//! Striping and mirroring after Patterson, Gibson and Katz (SIGMOD 1988); rotating parity in the
//! left-symmetric order of Lee and Katz (ASPLOS 1991): consecutive chunks lie on consecutive members.

use super::extents::Extents;
use super::level::Level;
use super::touched::Touched;

/// A fixed map between sectors of the array and sectors of members. A row is one chunk on every member; a lane is
/// a member, or the members that hold the same.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) level: Level,
    members: u64,
    copies: u64,
    columns: u64,
    chunk: u64,
    rows: u64,
}

/// Where a sector of the array lies: its row, its chunk of data in the row, and the offset in the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) row: u64,
    pub(super) column: u64,
    pub(super) offset: u64,
}

impl Layout {
    /// `chunk` is in sectors; a mirror has one chunk as large as a member.
    pub(super) fn new(level: Level, members: u64, chunk: u64, member_sectors: u64) -> Self {
        let (columns, copies) = match level {
            Level::Raid0 => (members, 1),
            Level::Raid1 => (1, members),
            Level::Raid10 => (members / 2, 2),
            Level::Raid5 => (members - 1, 1),
        };
        let chunk = if level == Level::Raid1 {
            member_sectors
        } else {
            chunk
        };
        Self {
            level,
            members,
            copies,
            columns,
            chunk,
            rows: member_sectors / chunk,
        }
    }

    pub(super) fn capacity(&self) -> u64 {
        self.rows * self.row_sectors()
    }

    /// Sectors of data in a row.
    pub(super) fn row_sectors(&self) -> u64 {
        self.columns * self.chunk
    }

    /// Sectors of a chunk.
    pub(super) fn chunk(&self) -> u64 {
        self.chunk
    }

    /// Chunks of data in a row.
    pub(super) fn columns(&self) -> u64 {
        self.columns
    }

    /// Members that hold the same.
    pub(super) fn copies(&self) -> usize {
        self.copies as usize
    }

    pub(super) fn members(&self) -> usize {
        self.members as usize
    }

    /// Sectors that each member contributes.
    pub(super) fn member_sectors(&self) -> u64 {
        self.rows * self.chunk
    }

    pub(super) fn spot(&self, sector: u64) -> Spot {
        let chunk = sector / self.chunk;
        Spot {
            row: chunk / self.columns,
            column: chunk % self.columns,
            offset: sector % self.chunk,
        }
    }

    /// The member that holds a row's parity.
    pub(super) fn parity(&self, row: u64) -> Option<usize> {
        (self.level == Level::Raid5).then(|| (self.members - 1 - row % self.members) as usize)
    }

    /// The lane of a row's chunk of data.
    pub(super) fn lane(&self, row: u64, column: u64) -> usize {
        match self.parity(row) {
            None => column as usize,
            Some(parity) => {
                let lane = parity + 1 + column as usize;
                if lane < self.members() {
                    lane
                } else {
                    lane - self.members()
                }
            }
        }
    }

    /// Calls `piece` with the place and length of each part of a range that lies in one chunk.
    pub(super) fn pieces(&self, sector: u64, sectors: u64, mut piece: impl FnMut(Spot, u64)) {
        let mut spot = self.spot(sector);
        let mut rest = sectors;
        while rest > 0 {
            let here = rest.min(self.chunk - spot.offset);
            piece(spot, here);
            rest -= here;
            spot.offset = 0;
            spot.column += 1;
            if spot.column == self.columns {
                spot = Spot {
                    row: spot.row + 1,
                    column: 0,
                    offset: 0,
                };
            }
        }
    }

    /// Sets, for each chunk of data of a row, the part of the range from `sector` to `end` that lies in it.
    pub(super) fn touch(&self, row: u64, sector: u64, end: u64, out: &mut [Touched]) {
        let mut base = row * self.row_sectors();
        for touched in out {
            *touched = Touched::default();
            let (start, end) = (sector.max(base), end.min(base + self.chunk));
            if start < end {
                touched.add(start - base, end - base);
            }
            base += self.chunk;
        }
    }

    /// Adds the places of a range's data, without parity.
    pub(super) fn data(&self, sector: u64, sectors: u64, out: &mut Extents) {
        self.pieces(sector, sectors, |spot, here| {
            let start = spot.row * self.chunk + spot.offset;
            out.add(self.lane(spot.row, spot.column), start, start + here);
        });
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
