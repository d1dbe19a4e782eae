//! Flash used with one bit a cell for incoming writes: fast until it is full; folded into the rest when idle.

use std::ops::RangeInclusive;

use crate::Nanos;
use crate::bounds::{CAPACITY_BYTES, TIME_NS};
use crate::problem::{Problem, SectionResult, require};
use crate::section::Section;

/// Idle times after which folding may start, in nanoseconds: up to 10⁶ s.
const IDLE_NS: RangeInclusive<Nanos> = 0..=1_000_000_000_000_000;

/// How a device uses flash with one bit a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct SlcParams {
    /// Its capacity while the device is empty, in bytes.
    pub size_bytes: u64,
    /// Its capacity when the device is full, in bytes.
    pub full_size_bytes: u64,
    /// Time a die is busy with a program of a page in every plane.
    pub program_ns: Nanos,
    /// Idle time after which folding starts.
    pub idle_ns: Nanos,
    /// Whether, once it is full, each write first folds an equal amount; else the write bypasses it.
    pub fold_when_full: bool,
}

impl SlcParams {
    /// Reads the table `slc_cache`, if there is one.
    pub(crate) fn parse(root: &mut Section<'_>) -> SectionResult<Option<Self>> {
        if !root.has("slc_cache") {
            return Ok(None);
        }
        let mut table = root.section("slc_cache")?;
        let size_bytes = table.capacity("size_mb")?;
        let params = Self {
            size_bytes,
            full_size_bytes: table.capacity_or("full_size_mb", size_bytes)?,
            program_ns: table.micros("program_us", TIME_NS)?,
            idle_ns: table.millis("idle_ms", IDLE_NS)?,
            fold_when_full: table.word("when_full", &["direct", "fold"])? == "fold",
        };
        table.finish()?;
        Ok(Some(params))
    }

    pub(super) fn validate(&self) -> SectionResult<()> {
        require("slc.size_bytes", self.size_bytes, CAPACITY_BYTES)?;
        require("slc.program_ns", self.program_ns, TIME_NS)?;
        require("slc.idle_ns", self.idle_ns, IDLE_NS)?;
        if self.full_size_bytes > self.size_bytes {
            return Err(Problem::new(
                "slc_cache.full_size_mb is above slc_cache.size_mb",
                "give the size on an empty device as size_mb, and what is left of it on a full one as full_size_mb",
            ));
        }
        Ok(())
    }
}

/// Its content.
#[derive(Debug)]
pub(super) struct Slc {
    params: SlcParams,
    unit_bytes: f64,
    held_units: f64,
    folded_units: f64,
}

impl Slc {
    pub(super) fn new(params: &SlcParams, unit_bytes: u64) -> Self {
        Self {
            params: params.clone(),
            unit_bytes: unit_bytes as f64,
            held_units: 0.0,
            folded_units: 0.0,
        }
    }

    pub(super) fn params(&self) -> &SlcParams {
        &self.params
    }

    /// Units written again from here to the rest of the flash, since the device was built.
    pub(super) fn folded_units(&self) -> f64 {
        self.folded_units
    }

    /// Takes `units` if they fit on a device with `mapped_share` in use.
    pub(super) fn take(&mut self, units: u64, mapped_share: f64) -> bool {
        let taken = self.held_units + units as f64;
        let fits = taken <= self.size_units(mapped_share);
        if fits {
            self.held_units = taken;
        }
        fits
    }

    pub(super) fn fill(&mut self, mapped_share: f64) {
        self.held_units = self.size_units(mapped_share);
    }

    /// Folds `units`, taken or passing through.
    pub(super) fn fold_through(&mut self, units: u64) {
        self.folded_units += units as f64;
    }

    /// Folds its content for as long as the device is idle.
    pub(super) fn fold_idle(&mut self, idle_ns: Nanos, unit_ns: f64) {
        if idle_ns > self.params.idle_ns {
            let able = (idle_ns - self.params.idle_ns) as f64 / unit_ns.max(f64::MIN_POSITIVE);
            let units = able.min(self.held_units);
            self.held_units -= units;
            self.folded_units += units;
        }
    }

    fn size_units(&self, mapped_share: f64) -> f64 {
        let (empty, full) = (
            self.params.size_bytes as f64,
            self.params.full_size_bytes as f64,
        );
        (empty - (empty - full) * mapped_share) / self.unit_bytes
    }
}
