//! Reads and writes of one row with parity, with or without a failed member.
//!
//! For a write to part of a row, read-modify-write reads the replaced data and its parity; reconstruct-write
//! reads the rest of the row instead (Patterson, Gibson and Katz 1988; Chen et al., ACM Computing Surveys
//! 26(2), 1994). The model takes the one with fewer reads, read-modify-write if equal.

use super::extents::Extents;
use super::health::Health;
use super::layout::Layout;
use super::touched::Touched;

/// How the new parity is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
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
pub(super) struct Row<'a> {
    layout: &'a Layout,
    row: u64,
    parity: usize,
    touched: &'a [Touched],
    /// The member that is not there.
    missing: Option<usize>,
    /// The part of a chunk that parity changes in.
    start: u64,
    end: u64,
}

impl<'a> Row<'a> {
    /// `touched` has an entry for each chunk of data of the row. `None` without parity.
    pub(super) fn new(
        layout: &'a Layout,
        health: &Health,
        row: u64,
        touched: &'a [Touched],
    ) -> Option<Self> {
        let some = || touched.iter().filter(|touched| !touched.is_nothing());
        Some(Self {
            layout,
            row,
            parity: layout.parity(row)?,
            touched,
            missing: health.missing_below((row + 1) * layout.chunk()),
            start: some().map(|touched| touched.start).min().unwrap_or(0),
            end: some().map(|touched| touched.end).max().unwrap_or(0),
        })
    }

    /// Adds the reads for the touched sectors. Data of a missing member is computed from the rest of the row.
    pub(super) fn read(&self, out: &mut Extents) {
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
    pub(super) fn read_before_write(&self, out: &mut Extents) {
        let way = self.way();
        for (lane, touched) in self.lanes() {
            match way {
                Way::None => {}
                Way::Modify => self.add(lane, touched.start, touched.end, out),
                Way::Reconstruct if touched.holed || touched.is_nothing() => {
                    self.add(lane, self.start, self.end, out);
                }
                Way::Reconstruct => {
                    self.add(lane, self.start, touched.start, out);
                    self.add(lane, touched.end, self.end, out);
                }
                Way::Everything => self.add(lane, self.start, self.end, out),
            }
        }
        if matches!(way, Way::Modify | Way::Everything) {
            self.add(self.parity, self.start, self.end, out);
        }
    }

    /// Adds the writes.
    pub(super) fn write(&self, out: &mut Extents) {
        for (lane, touched) in self.lanes() {
            self.add(lane, touched.start, touched.end, out);
        }
        self.add(self.parity, self.start, self.end, out);
    }

    fn way(&self) -> Way {
        let covers = |touched: &Touched| {
            !touched.holed && touched.start <= self.start && touched.end >= self.end
        };
        if self.missing == Some(self.parity) {
            return Way::None;
        }
        match self.lost() {
            Some(touched) if touched.is_nothing() => return Way::Modify,
            Some(touched) if !covers(&touched) => return Way::Everything,
            Some(_) => return Way::Reconstruct,
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
            Way::Reconstruct
        } else {
            Way::Modify
        }
    }

    /// What is touched on the missing member, if that holds data of this row.
    fn lost(&self) -> Option<Touched> {
        self.lanes()
            .find(|(lane, _)| self.missing == Some(*lane))
            .map(|(_, touched)| *touched)
    }

    fn lanes(&self) -> impl Iterator<Item = (usize, &Touched)> {
        (0..)
            .zip(self.touched)
            .map(|(column, touched)| (self.layout.lane(self.row, column), touched))
    }

    /// Adds a part of a member's chunk, if the member is there.
    fn add(&self, lane: usize, start: u64, end: u64, out: &mut Extents) {
        if self.missing != Some(lane) && start < end {
            let base = self.row * self.layout.chunk();
            out.add(lane, base + start, base + end);
        }
    }
}

#[cfg(test)]
#[path = "parity_tests.rs"]
mod tests;
