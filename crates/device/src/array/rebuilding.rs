//! The steps of a rebuild: reads from the surviving members, writes to the replacement.

use super::model::{Array, Event, Owner};
use crate::array::health::STEP_SECTORS;
use crate::array::parity::Row;
use crate::{Nanos, Op, Request};

impl Array {
    /// Rebuilding begins with the first request, since before it time has no meaning.
    pub(super) fn host_comes(&mut self, now: Nanos) {
        if let Some(rebuild) = &mut self.rebuild {
            rebuild.host_came = true;
            if !rebuild.begun {
                rebuild.begun = true;
                self.agenda.push(now, Event::Rebuild);
            }
        }
    }

    /// Reads what the next step needs.
    pub(super) fn rebuild_step(&mut self, now: Nanos) {
        let (Some(rebuild), Some(failed)) = (&mut self.rebuild, self.health.failed) else {
            return;
        };
        rebuild.step_began = now;
        rebuild.host_came = self.hosts.len() > 0;
        let start = rebuild.next;
        rebuild.next = (start + STEP_SECTORS).min(self.layout.member_sectors());
        self.extents.clear();
        if self.layout.copies() > 1 {
            let lane = failed / self.layout.copies();
            self.extents.add(lane, start, rebuild.next);
        } else {
            (0..self.layout.members())
                .filter(|&member| member != failed)
                .for_each(|member| self.extents.add(member, start, rebuild.next));
        }
        let task = self.open_task(Owner::Rebuild, start);
        self.tasks[task].writes_follow = true;
        self.send_reads(now, task);
    }

    /// Writes the reconstructed data to the replacement.
    pub(super) fn rebuild_write(&mut self, now: Nanos, task: u32) {
        let start = self.tasks[task].row;
        let end = (start + STEP_SECTORS).min(self.layout.member_sectors());
        if let (Some(rebuild), Some(failed)) = (&mut self.rebuild, self.health.failed) {
            rebuild.writing += 1;
            rebuild.waits = rebuild.writing > 1;
            self.send(now, task, failed, Op::Write, start..end, false);
        }
        self.rebuild_on(now);
    }

    /// Ends a step that began at `start`.
    pub(super) fn rebuild_written(&mut self, now: Nanos, start: u64) {
        let sectors = self.layout.member_sectors();
        self.health.rebuilt = (start + STEP_SECTORS).min(sectors);
        if self.health.rebuilt == sectors {
            self.health.failed = None;
            self.rebuild = None;
        } else if let Some(rebuild) = &mut self.rebuild {
            rebuild.writing -= 1;
            if std::mem::take(&mut rebuild.waits) {
                self.rebuild_on(now);
            }
        }
    }

    /// Lets the next step begin when the rate allows it, unless it waits for a write.
    fn rebuild_on(&mut self, now: Nanos) {
        let busy = self.hosts.len() > 0;
        if let Some(rebuild) = &self.rebuild
            && !rebuild.waits
            && rebuild.next < self.layout.member_sectors()
        {
            let next = now.max(rebuild.next_step(busy));
            self.agenda.push(next, Event::Rebuild);
        }
    }
}

// Data that is on the members before time begins to count.

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
