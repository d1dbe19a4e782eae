//! Writing through the translation layer: units gather to pages, pages go to the dies in turn.
//!
//! The cost of cleaning is spread over the writes: when blocks run out, every program also carries its share
//! of moves, and each die erases its blocks of a superblock when its turn comes.

use std::ops::Range;

use super::dies::FlashDies;
use super::ftl::{CleaningParams, FlashTranslationLayer};
use super::params::SsdParams;
use crate::ssd::dies::SsdWriteBuffer;
use crate::ssd::params::Slc;
use crate::{Nanos, Precondition, Request, SECTOR_BYTES, WrittenSectors};

/// The write stream of a device with a translation layer.
#[derive(Debug)]
pub(super) struct SsdWriteStream {
    ftl: FlashTranslationLayer,
    slc: Option<Slc>,
    unit_sectors: u64,
    page_units: u64,
    erase_ns: Nanos,
    blocks_per_superblock: f64,
    gathered_units: u64,
    /// Where the last write ended inside a unit, while that unit waits for its page to fill.
    tail: Option<u64>,
    /// Reads of the rest of partly written units, for the next program.
    merge_ns: Nanos,
    programs: u64,
    written_units: u64,
    /// Units moved and superblocks erased before time began to count.
    before: (u64, f64),
}

impl SsdWriteStream {
    pub(super) fn new(params: &SsdParams, cleaning: &CleaningParams) -> Self {
        let unit_bytes = cleaning.mapping_sectors * SECTOR_BYTES;
        Self {
            ftl: FlashTranslationLayer::new(&params.flash(), cleaning),
            slc: params.slc.as_ref().map(|slc| Slc::new(slc, unit_bytes)),
            unit_sectors: cleaning.mapping_sectors,
            page_units: cleaning.units_per_program(&params.flash()),
            erase_ns: cleaning.erase_ns,
            blocks_per_superblock: f64::from(params.dies() * params.planes),
            gathered_units: 0,
            tail: None,
            merge_ns: 0,
            programs: 0,
            written_units: 0,
            before: (0, 0.0),
        }
    }

    /// Writes what arrived at `at`; returns when the last page that it filled is programmed.
    pub(super) fn append(
        &mut self,
        at: Nanos,
        request: &Request,
        dies: &mut FlashDies,
        buffer: &mut SsdWriteBuffer,
    ) -> Nanos {
        let mut units = self.units_touched(request);
        if self.tail == Some(request.sector) {
            units.start += 1;
        } else {
            self.merge_tail(dies);
            self.merge_ns += self.partial(request.sector) * dies.mean_read_ns();
        }
        let end = request.sector + u64::from(request.sectors);
        self.tail = (self.partial(end) > 0).then_some(end);
        let mut left = units.end.saturating_sub(units.start);
        self.written_units += left;
        self.ftl.write(units);
        let mut done = at;
        while left > 0 {
            if self.gathered_units == self.page_units {
                done = done.max(self.program(at, dies, buffer));
            }
            let taken = left.min(self.page_units - self.gathered_units);
            left -= taken;
            self.gathered_units += taken;
            buffer.gather(taken * self.unit_sectors);
        }
        if self.gathered_units == self.page_units && self.tail.is_none() {
            done = done.max(self.program(at, dies, buffer));
        }
        done
    }

    /// Charges the read of the rest of the unit that the last write left unfinished.
    fn merge_tail(&mut self, dies: &FlashDies) {
        if self.tail.take().is_some() {
            self.merge_ns += dies.mean_read_ns();
        }
    }

    /// 1 if the boundary of a write lies inside a unit, else 0.
    fn partial(&self, sector: u64) -> u64 {
        u64::from(!sector.is_multiple_of(self.unit_sectors))
    }

    /// Programs a page that is not full, if there is one, with nothing in the rest of it.
    pub(super) fn close_page(
        &mut self,
        at: Nanos,
        dies: &mut FlashDies,
        buffer: &mut SsdWriteBuffer,
    ) -> Nanos {
        if self.gathered_units == 0 {
            return at;
        }
        self.merge_tail(dies);
        let padding = self.page_units - self.gathered_units;
        self.ftl.pad(padding);
        self.written_units += padding;
        self.program(at, dies, buffer)
    }

    fn program(&mut self, at: Nanos, dies: &mut FlashDies, buffer: &mut SsdWriteBuffer) -> Nanos {
        let die = self.programs % dies.count();
        let work = self.program_ns(die, at, dies) + self.merge_ns;
        self.programs += 1;
        self.merge_ns = 0;
        let done = dies.program(die, at, work);
        buffer.leave(self.gathered_units * self.unit_sectors, done);
        self.gathered_units = 0;
        done
    }

    /// Work of a die for the program of a page: in fast flash while there is space, else with its share of
    /// cleaning, and of an erase that is queued before it.
    fn program_ns(&mut self, die: u64, at: Nanos, dies: &mut FlashDies) -> Nanos {
        if let Some(slc) = &mut self.slc
            && slc.take(self.page_units, self.ftl.mapped_share())
        {
            return slc.params().program_ns;
        }
        dies.erase(die, at, self.ftl.erased_superblocks() as u64, self.erase_ns);
        let moves_ns = self.ftl.moves_per_write() * page_move_ns(dies);
        dies.program_ns(self.programs / dies.count()) + moves_ns as Nanos
    }

    /// Lets `idle_ns` without work pass.
    pub(super) fn idle(&mut self, idle_ns: Nanos, dies: &FlashDies) {
        if let Some(slc) = &mut self.slc {
            let moves = 1.0 + self.ftl.moves_per_write();
            let page_ns = moves * page_move_ns(dies) / dies.count() as f64;
            slc.fold_idle(idle_ns, page_ns / self.page_units as f64);
        }
    }

    pub(super) fn precondition(&mut self, params: &SsdParams, state: Precondition) {
        if let Some(cleaning) = &params.cleaning {
            *self = Self::new(params, cleaning);
        }
        match state {
            Precondition::Fresh => return,
            Precondition::Sequential => self.ftl.fill(),
            Precondition::Random { active_share } => match &params.cleaning {
                Some(cleaning) if active_share >= 1.0 => {
                    self.ftl = params.worn.copy(&params.flash(), cleaning);
                }
                _ => self.ftl.wear_in(active_share),
            },
        }
        if let Some(slc) = &mut self.slc {
            slc.fill(self.ftl.mapped_share());
        }
        self.forget_effort();
    }

    /// Writes without time.
    pub(super) fn preload(&mut self, request: &Request) {
        let (moved, erased) = (self.ftl.moved_units(), self.ftl.erased_superblocks());
        self.ftl.write(self.units_touched(request));
        self.before.0 += self.ftl.moved_units() - moved;
        self.before.1 += self.ftl.erased_superblocks() - erased;
    }

    fn forget_effort(&mut self) {
        self.before = (self.ftl.moved_units(), self.ftl.erased_superblocks());
    }

    /// Unmaps the units that lie in the range as a whole.
    pub(super) fn discard(&mut self, request: &Request) {
        let end = request.sector + u64::from(request.sectors);
        let from = request.sector.div_ceil(self.unit_sectors);
        self.ftl.discard(from..(end / self.unit_sectors).max(from));
    }

    pub(super) fn written(&self, host_sectors: u64) -> WrittenSectors {
        let folded = self.slc.as_ref().map_or(0.0, Slc::folded_units);
        let moved = self.ftl.moved_units() - self.before.0;
        let erased = self.ftl.erased_superblocks() - self.before.1;
        WrittenSectors {
            host_sectors,
            medium_sectors: (self.written_units + moved + folded as u64) * self.unit_sectors,
            erases: (erased * self.blocks_per_superblock) as u64,
        }
    }

    pub(super) fn valid_shares(&self) -> impl Iterator<Item = f64> {
        self.ftl.valid_shares()
    }

    fn units_touched(&self, request: &Request) -> Range<u64> {
        let end = request.sector + u64::from(request.sectors);
        request.sector / self.unit_sectors..end.div_ceil(self.unit_sectors)
    }
}

/// Time of a die to move a page of every plane.
fn page_move_ns(dies: &FlashDies) -> f64 {
    (dies.mean_read_ns() + dies.mean_program_ns()) as f64
}
