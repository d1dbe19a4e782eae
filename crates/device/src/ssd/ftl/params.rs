//! Parameters of the translation layer.

use std::ops::RangeInclusive;

use crate::bounds::TIME_NS;
use crate::problem::{Problem, SectionResult, require};
use crate::section::Section;
use crate::ssd::flash::Flash;
use crate::{Nanos, SECTOR_BYTES};

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
    /// Whether moved units go to blocks of their own rather than among those that the host writes.
    pub separate_moves: bool,
}

impl CleaningParams {
    /// Reads the table `cleaning`, if there is one.
    pub(crate) fn parse(root: &mut Section<'_>) -> SectionResult<Option<Self>> {
        if !root.has("cleaning") {
            return Ok(None);
        }
        let mut table = root.section("cleaning")?;
        let params = Self {
            mapping_sectors: table.kib_or("mapping_kib", 8, MAPPING_SECTORS)?,
            pages_per_block: table.integer("pages_per_block", PAGES_PER_BLOCK)?,
            erase_ns: table.micros("erase_us", TIME_NS)?,
            spare_share: table.number("spare_share", SPARE_SHARE)?,
            separate_moves: table.flag_or("separate_moves", false)?,
        };
        table.finish()?;
        Ok(Some(params))
    }

    pub(crate) fn validate(&self, flash: &Flash) -> SectionResult<()> {
        require(
            "cleaning.mapping_sectors",
            self.mapping_sectors,
            MAPPING_SECTORS,
        )?;
        require(
            "cleaning.pages_per_block",
            self.pages_per_block,
            PAGES_PER_BLOCK,
        )?;
        require("cleaning.erase_ns", self.erase_ns, TIME_NS)?;
        require("cleaning.spare_share", self.spare_share, SPARE_SHARE)?;
        let (mapping, stripe) = (self.mapping_sectors / 2, flash.die_stripe_sectors / 2);
        if !stripe.is_multiple_of(mapping) {
            return Err(Problem::new(
                format!(
                    "cleaning.mapping_kib = {mapping} does not divide stripe_kib x planes = {stripe}"
                ),
                "give a mapping unit of which whole ones fit a page of every plane",
            ));
        }
        let superblock_bytes = self.superblock_units(flash) * self.mapping_sectors * SECTOR_BYTES;
        let superblocks = flash.capacity_bytes / superblock_bytes;
        if superblocks < FEWEST_SUPERBLOCKS {
            return Err(Problem::new(
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
    pub(crate) fn units_per_program(&self, flash: &Flash) -> u64 {
        flash.die_stripe_sectors / self.mapping_sectors
    }

    /// Mapping units of a superblock: one block of every die and plane, written and erased as one.
    pub(crate) fn superblock_units(&self, flash: &Flash) -> u64 {
        self.units_per_program(flash) * self.pages_per_block * u64::from(flash.dies)
    }
}
