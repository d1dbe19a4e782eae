//! Reads and writes of one row with parity, with or without a failed member.
//!
//! For a write to part of a row, read-modify-write reads the replaced data and its parity; reconstruct-write
//! reads the rest of the row instead (Patterson, Gibson and Katz 1988; Chen et al., ACM Computing Surveys
//! 26(2), 1994). The model takes the one with fewer reads, read-modify-write if equal.

use super::raid_layout::RaidLayout;
use crate::array::raid_layout::{LaneExtents, OverwrittenPart};

/// How the new parity is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParityMethod {
    /// There is no member for it.
    None,
    /// From the replaced data and the old parity.
    Modify,
    /// From the rest of the row.
    Reconstruct,
    /// From all surviving chunks, because a partly replaced chunk is on a failed member.
    Everything,
}

/// One row, and the part of it that a request or the write cache touches.
pub(super) struct ParityRow<'a> {
    layout: &'a RaidLayout,
    row: u64,
    parity: usize,
    touched: &'a [OverwrittenPart],
    /// The member that is not there.
    missing: Option<usize>,
    /// The part of a chunk that parity changes in.
    start: u64,
    end: u64,
}

impl<'a> ParityRow<'a> {
    /// `touched` has an entry for each chunk of data of the row. `None` without parity.
    pub(super) fn new(
        layout: &'a RaidLayout,
        failed: Option<usize>,
        row: u64,
        touched: &'a [OverwrittenPart],
    ) -> Option<Self> {
        let some = || touched.iter().filter(|touched| !touched.is_nothing());
        Some(Self {
            layout,
            row,
            parity: layout.parity(row)?,
            touched,
            missing: failed,
            start: some().map(|touched| touched.start).min().unwrap_or(0),
            end: some().map(|touched| touched.end).max().unwrap_or(0),
        })
    }

    /// Adds the reads for the touched sectors. Data of a missing member is computed from the rest of the row.
    pub(super) fn read(&self, out: &mut LaneExtents) {
        let lost = self.lost().unwrap_or_default();
        for (lane, touched) in self.lanes() {
            if lost.is_nothing() {
                self.add(lane, touched.start, touched.end, out);
            } else if touched.is_nothing() {
                self.add(lane, lost.start, lost.end, out);
            } else {
                let (start, end) = (touched.start.min(lost.start), touched.end.max(lost.end));
                self.add(lane, start, end, out);
            }
        }
        self.add(self.parity, lost.start, lost.end, out);
    }

    /// Adds what must be read before the touched sectors can be written.
    pub(super) fn read_before_write(&self, out: &mut LaneExtents) {
        let way = self.way();
        for (lane, touched) in self.lanes() {
            match way {
                ParityMethod::None => {}
                ParityMethod::Modify => self.add(lane, touched.start, touched.end, out),
                ParityMethod::Reconstruct if touched.holed || touched.is_nothing() => {
                    self.add(lane, self.start, self.end, out);
                }
                ParityMethod::Reconstruct => {
                    self.add(lane, self.start, touched.start, out);
                    self.add(lane, touched.end, self.end, out);
                }
                ParityMethod::Everything => self.add(lane, self.start, self.end, out),
            }
        }
        if matches!(way, ParityMethod::Modify | ParityMethod::Everything) {
            self.add(self.parity, self.start, self.end, out);
        }
    }

    /// Adds the writes.
    pub(super) fn write(&self, out: &mut LaneExtents) {
        for (lane, touched) in self.lanes() {
            self.add(lane, touched.start, touched.end, out);
        }
        self.add(self.parity, self.start, self.end, out);
    }

    fn way(&self) -> ParityMethod {
        let covers = |touched: &OverwrittenPart| {
            !touched.holed && touched.start <= self.start && touched.end >= self.end
        };
        if self.missing == Some(self.parity) {
            return ParityMethod::None;
        }
        match self.lost() {
            Some(touched) if touched.is_nothing() => return ParityMethod::Modify,
            Some(touched) if !covers(&touched) => return ParityMethod::Everything,
            Some(_) => return ParityMethod::Reconstruct,
            None => {}
        }
        let modify = 1 + self
            .touched
            .iter()
            .filter(|touched| !touched.is_nothing())
            .count();
        let reconstruct = self
            .touched
            .iter()
            .filter(|touched| !covers(touched))
            .count();
        if reconstruct < modify {
            ParityMethod::Reconstruct
        } else {
            ParityMethod::Modify
        }
    }

    /// What is touched on the missing member, if that holds data of this row.
    fn lost(&self) -> Option<OverwrittenPart> {
        self.lanes()
            .find(|(lane, _)| self.missing == Some(*lane))
            .map(|(_, touched)| *touched)
    }

    fn lanes(&self) -> impl Iterator<Item = (usize, &OverwrittenPart)> {
        (0..)
            .zip(self.touched)
            .map(|(column, touched)| (self.layout.lane(self.row, column), touched))
    }

    /// Adds a part of a member's chunk, if the member is there.
    fn add(&self, lane: usize, start: u64, end: u64, out: &mut LaneExtents) {
        if self.missing != Some(lane) && start < end {
            let base = self.row * self.layout.chunk();
            out.add(lane, base + start, base + end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::raid_layout::RaidLevel;

    const CHUNK: u64 = 128;

    /// Sectors that a write of `start..end` within row 0 of a RAID 5 reads and writes, by member.
    fn work(members: u64, start: u64, end: u64, failed: Option<usize>) -> [Vec<(usize, u64)>; 3] {
        let layout = RaidLayout::new(RaidLevel::Raid5, members, CHUNK, CHUNK * 10);
        let mut touched = vec![OverwrittenPart::default(); layout.columns() as usize];
        layout.touch(0, start, end, &mut touched);
        let row = ParityRow::new(&layout, failed, 0, &touched).expect("a level with parity");
        let sectors = |find: &dyn Fn(&mut LaneExtents)| {
            let mut extents = LaneExtents::for_lanes(members as usize);
            find(&mut extents);
            let mut all: Vec<_> = extents.iter().map(|e| (e.lane, e.end - e.start)).collect();
            all.sort_unstable();
            all
        };
        [
            sectors(&|out| row.read_before_write(out)),
            sectors(&|out| row.write(out)),
            sectors(&|out| row.read(out)),
        ]
    }

    #[test]
    fn a_small_write_reads_and_writes_data_and_parity() {
        let [reads, writes, _] = work(7, 136, 152, None);
        assert_eq!(reads, [(1, 16), (6, 16)]);
        assert_eq!(writes, [(1, 16), (6, 16)]);
    }

    #[test]
    fn a_write_to_most_of_a_row_reads_the_rest() {
        let [reads, writes, _] = work(7, 0, 5 * CHUNK, None);
        assert_eq!(reads, [(5, CHUNK)]);
        assert_eq!(writes.len(), 6);
        let [reads, _, _] = work(7, 16, 5 * CHUNK, None);
        assert_eq!(reads, [(0, 16), (5, CHUNK)], "the head of a chunk too");
    }

    #[test]
    fn a_whole_row_is_written_without_reads() {
        let [reads, writes, _] = work(7, 0, 6 * CHUNK, None);
        assert_eq!(reads, []);
        assert_eq!(writes, (0..7).map(|m| (m, CHUNK)).collect::<Vec<_>>());
    }

    #[test]
    fn three_members_reconstruct_only_if_that_is_less() {
        let [reads, _, _] = work(3, 0, 8, None);
        assert_eq!(reads, [(1, 8)], "one read instead of two");
        let [reads, _, _] = work(4, 0, 8, None);
        assert_eq!(reads, [(0, 8), (3, 8)], "equal: read-modify-write");
    }

    #[test]
    fn without_its_parity_a_row_is_just_written() {
        let [reads, writes, _] = work(7, 0, 16, Some(6));
        assert_eq!((reads, writes), (vec![], vec![(0, 16)]));
    }

    #[test]
    fn a_write_to_the_failed_member_changes_parity_from_all_the_rest() {
        let [reads, writes, _] = work(7, 0, 16, Some(0));
        assert_eq!(reads, (1..6).map(|m| (m, 16)).collect::<Vec<_>>());
        assert_eq!(writes, [(6, 16)]);
        let [reads, writes, _] = work(7, CHUNK - 8, CHUNK + 8, Some(0));
        assert_eq!(reads, (1..7).map(|m| (m, CHUNK)).collect::<Vec<_>>());
        assert_eq!(writes, [(1, 8), (6, CHUNK)]);
    }

    #[test]
    fn a_write_beside_the_failed_member_needs_no_more_reads() {
        let [reads, writes, _] = work(7, CHUNK, 5 * CHUNK, Some(0));
        assert_eq!(reads.len(), 5, "the four replaced and their parity");
        assert_eq!(writes.len(), 5);
    }

    #[test]
    fn a_read_of_the_failed_member_takes_all_others() {
        let [_, _, reads] = work(7, 8, 24, Some(0));
        assert_eq!(reads, (1..7).map(|m| (m, 16)).collect::<Vec<_>>());
        let [_, _, reads] = work(7, CHUNK, CHUNK + 16, Some(0));
        assert_eq!(reads, [(1, 16)]);
    }

    #[test]
    fn a_gap_between_dirty_sectors_is_read_to_reconstruct() {
        let layout = RaidLayout::new(RaidLevel::Raid5, 3, CHUNK, CHUNK * 10);
        let mut touched = vec![OverwrittenPart::default(); 2];
        touched[0].add(0, 8);
        touched[0].add(64, 128);
        touched[1].add(0, 128);
        let row = ParityRow::new(&layout, None, 0, &touched).map(|row| {
            let mut reads = LaneExtents::for_lanes(3);
            row.read_before_write(&mut reads);
            reads
                .iter()
                .map(|e| (e.lane, e.end - e.start))
                .collect::<Vec<_>>()
        });
        assert_eq!(row, Some(vec![(0, 128)]));
    }
}
