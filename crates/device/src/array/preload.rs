//! Data that is on the members before time begins to count.

use super::model::Array;
use super::parity::Row;
use crate::{Op, Request};

impl Array {
    /// Gives members their shares of a request, with parity and copies.
    pub(super) fn preload_members(&mut self, request: &Request) {
        if request.op == Op::Flush {
            return;
        }
        let (sector, sectors) = (request.sector, u64::from(request.sectors));
        self.extents.clear();
        if request.op == Op::Write && self.layout.parity(0).is_some() {
            self.locate_rows(sector, sector + sectors);
        } else {
            self.layout.data(sector, sectors, &mut self.extents);
        }
        let copies = self.layout.copies();
        for extent in self.extents.iter() {
            let share = Request {
                sector: extent.start,
                sectors: (extent.end - extent.start) as u32,
                ..*request
            };
            for member in extent.lane * copies..(extent.lane + 1) * copies {
                self.members.preload(member, &share);
            }
        }
    }

    fn locate_rows(&mut self, sector: u64, end: u64) {
        let size = self.layout.row_sectors();
        for row in sector / size..end.div_ceil(size) {
            self.layout.touch(row, sector, end, &mut self.touched);
            if let Some(row) = Row::new(&self.layout, &self.health, row, &self.touched) {
                row.write(&mut self.extents);
            }
        }
    }
}
