//! The translation layer: a page map, and cleaning that takes the block with the fewest valid units.
//!
//! Page mapping with greedy cleaning, as analysed by Desnoyers, "Analytic modeling of SSD write performance",
//! SYSTOR 2012. Only state: no time. Writes fill superblocks in order of arrival; when free blocks run out,
//! the valid units of the emptiest sealed block are moved and the block is erased. [`FlashTranslationLayer::moves_per_write`]
//! returns this cost, for the caller to spread over the writes that caused it.

mod blocks;
mod worn_state;

use std::ops::{Range, RangeInclusive};

use blocks::{EraseBlocks, NOTHING, NumberTable, TrackedUnits};

use crate::params_error::{ParamsError, SectionResult, TIME_NS};
use crate::profile_section::ProfileSection;
use crate::{Nanos, SECTOR_BYTES};

pub use worn_state::uniform_write_amplification;

/// Free blocks below which cleaning starts: one to write to, one for units moved meanwhile.
const RESERVE: usize = 2;
/// Fewest units of a block where only a share of the units is tracked.
const LEAST_SAMPLED_UNITS: u64 = 64;
/// A block that is being filled.
#[derive(Clone, Copy, Debug)]
struct WritePoint {
    block: u32,
    filled: u32,
}

/// The map and the blocks of a device.
#[derive(Clone, Debug)]
pub(super) struct FlashTranslationLayer {
    sample: TrackedUnits,
    block_units: u32,
    superblocks_per_block: f64,
    /// Slot of each tracked unit, plus one.
    slots: NumberTable,
    /// Tracked unit last written to each slot, plus one.
    units: NumberTable,
    blocks: EraseBlocks,
    free: Vec<u32>,
    point: WritePoint,
    mapped: u64,
    moved: u64,
    cleaned: u64,
    moves_per_write: f64,
    padding: u64,
}

impl FlashTranslationLayer {
    /// An empty device.
    pub(super) fn new(flash: &FlashSizes, cleaning: &CleaningParams) -> Self {
        let all = flash.capacity_bytes / (cleaning.mapping_sectors * SECTOR_BYTES);
        let sample = TrackedUnits::of(all);
        let superblock = cleaning.superblock_units(flash);
        let block_units =
            (superblock / sample.units_per_tracked()).max(LEAST_SAMPLED_UNITS.min(superblock));
        let blocks =
            erase_block_count(sample.tracked(), cleaning.spare_share, block_units) + RESERVE + 1;
        let mut ftl = Self {
            sample,
            block_units: block_units as u32,
            superblocks_per_block: (block_units * sample.units_per_tracked()) as f64
                / superblock as f64,
            slots: NumberTable::new(sample.tracked() as usize),
            units: NumberTable::new(blocks * block_units as usize),
            blocks: EraseBlocks::new(blocks, block_units as usize),
            free: (0..blocks as u32).rev().collect(),
            point: WritePoint {
                block: 0,
                filled: 0,
            },
            mapped: 0,
            moved: 0,
            cleaned: 0,
            moves_per_write: 0.0,
            padding: 0,
        };
        ftl.open();
        ftl
    }

    /// The same state, with tables shared by all copies of it.
    pub(super) fn shared(self) -> Self {
        Self {
            slots: self.slots.shared(),
            units: self.units.shared(),
            ..self
        }
    }

    /// Maps `units` to new places, cleaning as needed.
    pub(super) fn write(&mut self, units: Range<u64>) {
        for unit in self.sample.within(units) {
            self.make_room();
            self.forget(unit as usize);
            self.place(unit as u32);
            self.mapped += 1;
        }
    }

    /// Fills `units` of the write point with padding.
    pub(super) fn pad(&mut self, units: u64) {
        self.padding += units;
        while self.padding >= self.sample.units_per_tracked() {
            self.padding -= self.sample.units_per_tracked();
            self.make_room();
            let point = &mut self.point;
            let slot = point.block * self.block_units + point.filled;
            self.units.set(slot as usize, NOTHING);
            point.filled += 1;
        }
    }

    /// Unmaps `units`.
    pub(super) fn discard(&mut self, units: Range<u64>) {
        for unit in self.sample.within(units) {
            self.forget(unit as usize);
            self.slots.set(unit as usize, NOTHING);
        }
    }

    /// Units moved for each unit that the host writes at present: 0 while there are free blocks.
    pub(super) fn moves_per_write(&self) -> f64 {
        self.moves_per_write
    }

    /// Units moved since the device was built.
    pub(super) fn moved_units(&self) -> u64 {
        self.moved * self.sample.units_per_tracked()
    }

    /// Superblocks erased since the device was built.
    pub(super) fn erased_superblocks(&self) -> f64 {
        self.cleaned as f64 * self.superblocks_per_block
    }

    /// Share of the address space that is mapped.
    pub(super) fn mapped_share(&self) -> f64 {
        self.mapped as f64 / self.sample.tracked() as f64
    }

    /// Share of valid units of every sealed block.
    pub(super) fn valid_shares(&self) -> impl Iterator<Item = f64> {
        let units = f64::from(self.block_units);
        let counts = self.blocks.sealed_counts();
        counts.map(move |valid| f64::from(valid) / units)
    }

    /// Invalidates the stored copy of a tracked unit, if there is one.
    fn forget(&mut self, unit: usize) {
        let slot = self.slots.get(unit);
        if slot != NOTHING {
            self.blocks.invalidate((slot - 1) / self.block_units);
            self.mapped -= 1;
        }
    }

    /// Ensures that the write point has a slot left.
    fn make_room(&mut self) {
        while self.point.filled == self.block_units {
            self.seal_and_open();
            let before = self.moved;
            while self.free.len() < RESERVE {
                self.clean();
            }
            let left = self.block_units - self.point.filled;
            let moves = (self.moved - before) as f64;
            self.moves_per_write = moves / f64::from(left.max(1));
        }
    }

    fn clean(&mut self) {
        let (victim, valid) = self.blocks.take_emptiest();
        let first = victim * self.block_units;
        for slot in first..first + self.block_units {
            let unit = self.units.get(slot as usize);
            if unit != NOTHING && self.slots.get(unit as usize - 1) == slot + 1 {
                self.blocks.invalidate(victim);
                if self.point.filled == self.block_units {
                    self.seal_and_open();
                }
                self.place(unit - 1);
            }
        }
        self.moved += u64::from(valid);
        self.cleaned += 1;
        self.free.push(victim);
    }

    fn seal_and_open(&mut self) {
        self.blocks.seal(self.point.block);
        self.open();
    }

    fn open(&mut self) {
        let block = self.free.pop().expect("cleaning keeps blocks in reserve");
        self.point = WritePoint { block, filled: 0 };
    }

    fn place(&mut self, unit: u32) {
        let point = &mut self.point;
        let slot = point.block * self.block_units + point.filled;
        point.filled += 1;
        self.blocks.validate(point.block);
        self.units.set(slot as usize, unit + 1);
        self.slots.set(unit as usize, slot + 1);
    }
}

/// Blocks for `units` and their share of spare space, without those being filled and in reserve. Less one,
/// for the average content of the blocks being filled: about a block's worth of units.
fn erase_block_count(units: u64, spare_share: f64, block_units: u64) -> usize {
    let space = (units as f64 * (1.0 + spare_share) / block_units as f64) as u64;
    let least = units / block_units + 1;
    (space - 1).max(least) as usize
}

// Parameters of the translation layer.

/// Fewest superblocks for which choosing among them means anything.
const FEWEST_SUPERBLOCKS: u64 = 32;

const MAPPING_SECTORS: RangeInclusive<u64> = 2..=2048;
const PAGES_PER_BLOCK: RangeInclusive<u64> = 1..=65_536;
const SPARE_SHARE: RangeInclusive<f64> = 0.01..=4.0;

/// How the translation layer maps and cleans.
#[derive(Clone, Debug, PartialEq)]
pub struct CleaningParams {
    /// What one entry of the map stands for.
    pub mapping_sectors: u64,
    /// Pages of an erase block.
    pub pages_per_block: u64,
    /// Time a die is busy with the erase of a block in every plane.
    pub erase_ns: Nanos,
    /// Flash beyond the addressable size that takes part in cleaning, as a share of that size.
    pub spare_share: f64,
}

impl CleaningParams {
    /// Reads the table `cleaning`, if there is one.
    pub(crate) fn parse(root: &mut ProfileSection<'_>) -> SectionResult<Option<Self>> {
        if !root.has("cleaning") {
            return Ok(None);
        }
        let mut table = root.section("cleaning")?;
        let params = Self {
            mapping_sectors: table.kib_or("mapping_kib", 8, MAPPING_SECTORS)?,
            pages_per_block: table.integer("pages_per_block", PAGES_PER_BLOCK)?,
            erase_ns: table.micros("erase_us", TIME_NS)?,
            spare_share: table.number("spare_share", SPARE_SHARE)?,
        };
        table.finish()?;
        Ok(Some(params))
    }

    pub(crate) fn validate(&self, flash: &FlashSizes) -> SectionResult<()> {
        let (mapping, stripe) = (self.mapping_sectors / 2, flash.die_stripe_sectors / 2);
        if !stripe.is_multiple_of(mapping) {
            return Err(ParamsError::new(
                format!(
                    "cleaning.mapping_kib = {mapping} does not divide stripe_kib x planes = {stripe}"
                ),
                "give a mapping unit of which whole ones fit a page of every plane",
            ));
        }
        let superblock_bytes = self.superblock_units(flash) * self.mapping_sectors * SECTOR_BYTES;
        let superblocks = flash.capacity_bytes / superblock_bytes;
        if superblocks < FEWEST_SUPERBLOCKS {
            return Err(ParamsError::new(
                format!(
                    "a block of every die and plane is {superblock_bytes} bytes: capacity_mb holds {superblocks} of them"
                ),
                format!(
                    "give fewer dies, planes or cleaning.pages_per_block, so that it holds {FEWEST_SUPERBLOCKS}"
                ),
            ));
        }
        Ok(())
    }

    /// Mapping units that one program of a die takes.
    pub(crate) fn units_per_program(&self, flash: &FlashSizes) -> u64 {
        flash.die_stripe_sectors / self.mapping_sectors
    }

    /// Mapping units of a superblock: one block of every die and plane, written and erased as one.
    pub(crate) fn superblock_units(&self, flash: &FlashSizes) -> u64 {
        self.units_per_program(flash) * self.pages_per_block * u64::from(flash.dies)
    }
}

// The flash as the translation layer sees it.

/// Sizes of the flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlashSizes {
    /// Addressable size, in bytes.
    pub(crate) capacity_bytes: u64,
    /// Dies on all channels.
    pub(crate) dies: u32,
    /// Sectors that a die programs at once: a page of every plane.
    pub(crate) die_stripe_sectors: u64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 1,000 units in superblocks of 8.
    fn params() -> (FlashSizes, CleaningParams) {
        let flash = FlashSizes {
            capacity_bytes: 4_096_000,
            dies: 2,
            die_stripe_sectors: 8,
        };
        let cleaning = CleaningParams {
            mapping_sectors: 8,
            pages_per_block: 4,
            erase_ns: 0,
            spare_share: 0.1,
        };
        (flash, cleaning)
    }

    fn check(ftl: &FlashTranslationLayer) -> Result<(), TestCaseError> {
        let slots =
            (0..ftl.sample.tracked()).map(|unit| (unit as u32, ftl.slots.get(unit as usize)));
        let mapped: Vec<_> = slots.filter(|(_, slot)| *slot != NOTHING).collect();
        prop_assert_eq!(mapped.len() as u64, ftl.mapped);
        let mut valid = vec![0; ftl.blocks.valid_counts().len()];
        for (unit, slot) in mapped {
            prop_assert_eq!(
                ftl.units.get(slot as usize - 1),
                unit + 1,
                "the slot holds another unit"
            );
            valid[(slot as usize - 1) / ftl.block_units as usize] += 1;
        }
        prop_assert_eq!(&valid, ftl.blocks.valid_counts());
        for &block in &ftl.free {
            prop_assert_eq!(valid[block as usize], 0, "a free block holds units");
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn map_and_blocks_agree(
            worn in any::<bool>(),
            steps in prop::collection::vec((0..8_u8, 0..1000_u64, 1..100_u64), 1..300),
        ) {
            let (flash, cleaning) = params();
            let mut ftl = FlashTranslationLayer::new(&flash, &cleaning);
            if worn {
                ftl.wear_in(0.5);
            }
            for (kind, start, length) in steps {
                match kind {
                    0 => ftl.discard(start..start + length),
                    1 => ftl.pad(length % 8),
                    _ => ftl.write(start..start + length),
                }
            }
            check(&ftl)?;
        }
    }
}
