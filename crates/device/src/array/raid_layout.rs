//! Where the sectors of an array lie on its members.
//!
//! Striping and mirroring after Patterson, Gibson and Katz (SIGMOD 1988); rotating parity in the
//! left-symmetric order of Lee and Katz (ASPLOS 1991): consecutive chunks lie on consecutive members.

/// A fixed map between sectors of the array and sectors of members. A row is one chunk on every member; a lane is
/// a member, or the members that hold the same.
#[derive(Clone, Debug)]
pub(super) struct RaidLayout {
    pub(super) level: RaidLevel,
    members: u64,
    copies: u64,
    columns: u64,
    chunk: u64,
    rows: u64,
}

/// Where a sector of the array lies: its row, its chunk of data in the row, and the offset in the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkPosition {
    pub(super) row: u64,
    pub(super) column: u64,
    pub(super) offset: u64,
}

impl RaidLayout {
    /// `chunk` is in sectors; a mirror has one chunk as large as a member.
    pub(super) fn new(level: RaidLevel, members: u64, chunk: u64, member_sectors: u64) -> Self {
        let (columns, copies) = match level {
            RaidLevel::Raid0 => (members, 1),
            RaidLevel::Raid1 => (1, members),
            RaidLevel::Raid10 => (members / 2, 2),
            RaidLevel::Raid5 => (members - 1, 1),
        };
        let chunk = if level == RaidLevel::Raid1 {
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

    pub(super) fn spot(&self, sector: u64) -> ChunkPosition {
        let chunk = sector / self.chunk;
        ChunkPosition {
            row: chunk / self.columns,
            column: chunk % self.columns,
            offset: sector % self.chunk,
        }
    }

    /// The member that holds a row's parity.
    pub(super) fn parity(&self, row: u64) -> Option<usize> {
        (self.level == RaidLevel::Raid5).then(|| (self.members - 1 - row % self.members) as usize)
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
    pub(super) fn pieces(
        &self,
        sector: u64,
        sectors: u64,
        mut piece: impl FnMut(ChunkPosition, u64),
    ) {
        let mut spot = self.spot(sector);
        let mut rest = sectors;
        while rest > 0 {
            let here = rest.min(self.chunk - spot.offset);
            piece(spot, here);
            rest -= here;
            spot.offset = 0;
            spot.column += 1;
            if spot.column == self.columns {
                spot = ChunkPosition {
                    row: spot.row + 1,
                    column: 0,
                    offset: 0,
                };
            }
        }
    }

    /// Sets, for each chunk of data of a row, the part of the range from `sector` to `end` that lies in it.
    pub(super) fn touch(&self, row: u64, sector: u64, end: u64, out: &mut [OverwrittenPart]) {
        let mut base = row * self.row_sectors();
        for touched in out {
            *touched = OverwrittenPart::default();
            let (start, end) = (sector.max(base), end.min(base + self.chunk));
            if start < end {
                touched.add(start - base, end - base);
            }
            base += self.chunk;
        }
    }

    /// Adds the places of a range's data, without parity.
    pub(super) fn data(&self, sector: u64, sectors: u64, out: &mut LaneExtents) {
        self.pieces(sector, sectors, |spot, here| {
            let start = spot.row * self.chunk + spot.offset;
            out.add(self.lane(spot.row, spot.column), start, start + here);
        });
    }
}

// RAID levels.

/// How data lies on the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaidLevel {
    /// Striped, without redundancy.
    Raid0,
    /// The same on every member.
    Raid1,
    /// Striped over pairs of members that hold the same.
    Raid10,
    /// Striped with one rotating chunk of parity a row.
    Raid5,
}

impl RaidLevel {
    /// Fewest members that such an array can have.
    pub(super) fn least_members(self) -> u32 {
        match self {
            Self::Raid0 | Self::Raid1 => 2,
            Self::Raid5 => 3,
            Self::Raid10 => 4,
        }
    }
}

// The sectors of each member that one task covers.

/// Consecutive sectors of one lane: a member, or a group of members that hold the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LaneExtent {
    pub(super) lane: usize,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Extents in order of address. An extent that continues its lane's last one is joined with it, so that a
/// long request becomes few commands.
#[derive(Debug)]
pub(super) struct LaneExtents(Vec<LaneExtent>);

impl LaneExtents {
    /// Reserves memory for the extents of usual requests over this number of lanes.
    pub(super) fn for_lanes(lanes: usize) -> Self {
        Self(Vec::with_capacity(64 + 4 * lanes))
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn add(&mut self, lane: usize, start: u64, end: u64) {
        match self.0.iter_mut().rev().find(|extent| extent.lane == lane) {
            Some(last) if last.end == start => last.end = end,
            _ if start < end => self.0.push(LaneExtent { lane, start, end }),
            _ => {}
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, index: usize) -> LaneExtent {
        self.0[index]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &LaneExtent> {
        self.0.iter()
    }
}

// The part of a chunk that a write replaces.

/// The part of a chunk that a write replaces: from offset `start` to offset `end`; empty if they are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OverwrittenPart {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Whether some sectors in between are not replaced. They are written again with the data that was read.
    pub(super) holed: bool,
}

impl OverwrittenPart {
    pub(super) fn is_nothing(&self) -> bool {
        self.start == self.end
    }

    /// Adds a stretch that does not lie before the others.
    pub(super) fn add(&mut self, start: u64, end: u64) {
        if self.is_nothing() {
            *self = Self {
                start,
                end,
                holed: false,
            };
        } else {
            self.holed |= start > self.end;
            self.end = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn level() -> impl Strategy<Value = (RaidLevel, u64)> {
        prop_oneof![
            (2_u64..20).prop_map(|n| (RaidLevel::Raid0, n)),
            (2_u64..5).prop_map(|n| (RaidLevel::Raid1, n)),
            (2_u64..10).prop_map(|n| (RaidLevel::Raid10, 2 * n)),
            (3_u64..20).prop_map(|n| (RaidLevel::Raid5, n)),
        ]
    }

    proptest! {
        #[test]
        fn every_sector_of_data_has_a_place_of_its_own(
            (level, members) in level(), chunk in 1_u64..40, rows in 1_u64..25, spare in 0_u64..40,
        ) {
            let layout = RaidLayout::new(level, members, chunk, rows * chunk + spare.min(chunk - 1));
            let (mut places, member_sectors) = (BTreeSet::new(), layout.rows * layout.chunk());
            for sector in 0..layout.capacity() {
                let ChunkPosition { row, column, offset } = layout.spot(sector);
                let lane = layout.lane(row, column);
                let place = row * layout.chunk() + offset;
                prop_assert!(place < member_sectors);
                prop_assert!((lane + 1) * layout.copies() <= layout.members());
                prop_assert!(layout.parity(row) != Some(lane), "sector {} shares a member with its parity", sector);
                prop_assert!(places.insert((lane, place)), "two sectors at one place");
            }
            let parity = if level == RaidLevel::Raid5 { member_sectors } else { 0 };
            let lanes = layout.members() / layout.copies();
            prop_assert_eq!(places.len() as u64 + parity, lanes as u64 * member_sectors);
        }

        #[test]
        fn extents_hold_each_sector_of_a_range_once(
            (level, members) in level(), chunk in 1_u64..40, from in 0.0..1.0, length in 0.0..1.0,
        ) {
            let layout = RaidLayout::new(level, members, chunk, 20 * chunk);
            let sector = (from * layout.capacity() as f64) as u64;
            let sectors = 1 + (length * (layout.capacity() - sector - 1) as f64) as u64;
            let mut extents = LaneExtents::for_lanes(1);
            layout.data(sector, sectors, &mut extents);
            let held: BTreeSet<(usize, u64)> = extents
                .iter()
                .flat_map(|extent| (extent.start..extent.end).map(|place| (extent.lane, place)))
                .collect();
            let wanted: BTreeSet<(usize, u64)> = (sector..sector + sectors)
                .map(|sector| {
                    let spot = layout.spot(sector);
                    (layout.lane(spot.row, spot.column), spot.row * layout.chunk() + spot.offset)
                })
                .collect();
            prop_assert_eq!(extents.iter().map(|extent| extent.end - extent.start).sum::<u64>(), sectors);
            prop_assert_eq!(held, wanted);
        }
    }

    #[test]
    fn parity_rotates_left_and_data_follows_it() {
        let layout = RaidLayout::new(RaidLevel::Raid5, 4, 1, 4);
        let row = |row| -> Vec<usize> { (0..3).map(|column| layout.lane(row, column)).collect() };
        let parity: Vec<_> = (0..4).map(|row| layout.parity(row)).collect();
        assert_eq!(parity, [Some(3), Some(2), Some(1), Some(0)]);
        assert_eq!(
            [row(0), row(1), row(2), row(3)],
            [[0, 1, 2], [3, 0, 1], [2, 3, 0], [1, 2, 3]]
        );
    }

    #[test]
    fn a_long_read_of_a_stripe_is_one_command_a_member() {
        let layout = RaidLayout::new(RaidLevel::Raid0, 4, 16, 1600);
        let mut extents = LaneExtents::for_lanes(4);
        layout.data(8, 640, &mut extents);
        assert_eq!(extents.len(), 4);
    }
}
