//! Parameters of the solid-state disk.

use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};

use super::ftl::CleaningParams;
use crate::Nanos;
use crate::params_error::{ParamsError, SectionResult, TIME_NS};
use crate::profile_section::{ProfileSection, nanos_of_micros, range_in_micros};
use crate::ssd::ftl::{FlashSizes, FlashTranslationLayer};

/// Most kinds of page that a profile may time apart: four bits a cell.
const MOST_PAGE_TYPES: usize = 4;

const CHANNELS: RangeInclusive<u32> = 1..=4096;
const DIES_PER_CHANNEL: RangeInclusive<u32> = 1..=256;
const PLANES: RangeInclusive<u32> = 1..=16;
const STRIPE_SECTORS: RangeInclusive<u64> = 1..=2048;
const CACHE_SECTORS: RangeInclusive<u64> = 0..=1 << 31;

/// Parameters of [`super::Ssd`].
#[derive(Clone, Debug, PartialEq)]
pub struct SsdParams {
    /// Addressable size, in bytes.
    pub capacity_bytes: u64,
    /// Buses to the flash.
    pub channels: u32,
    /// Dies on each channel; a die does one thing at a time.
    pub dies_per_channel: u32,
    /// Planes of a die, which are read and programmed together.
    pub planes: u32,
    /// Page of one plane.
    pub stripe_sectors: u64,
    /// Time a die is busy with the read of a page, for each kind of page (lower, middle, upper).
    pub read_ns: Vec<Nanos>,
    /// Time a die is busy with the program of a page in every plane, for each kind of page.
    pub program_ns: Vec<Nanos>,
    /// Time a channel takes for a sector; 0 for a channel without limit.
    pub channel_sector_ns: f64,
    /// Time after which a die leaves a program or an erase for a read, if it can.
    pub suspend_ns: Option<Nanos>,
    /// Time the controller spends on a command, one after the other; its reciprocal bounds the rate.
    pub command_ns: Nanos,
    /// As `command_ns`, for a write.
    pub write_command_ns: Nanos,
    /// Latency of a read, without its waits.
    pub read_overhead_ns: Nanos,
    /// Latency of a write, without its waits.
    pub write_overhead_ns: Nanos,
    /// Time of a flush, without its waits.
    pub flush_ns: Nanos,
    /// Further time of a flush after writes, to a cache without protection: its mapping is written.
    pub journal_ns: Nanos,
    /// Whether other commands go on during a flush.
    pub flush_queued: bool,
    /// Time the link takes for a sector; 0 for a link without limit.
    pub sector_ns: f64,
    /// As `sector_ns`, for a write.
    pub write_sector_ns: f64,
    /// Size of the write cache; 0 for none.
    pub cache_sectors: u64,
    /// Whether the cache content survives a loss of power, so that a flush need not empty it.
    pub power_loss_protection: bool,
    /// Whether the device reports a write-back cache, so that the kernel sends flushes whether they are needed or not.
    pub reports_write_back: bool,
    /// The translation layer; without one, writes go to the place that their address gives.
    pub cleaning: Option<CleaningParams>,
    /// Flash used with one bit a cell for incoming writes.
    pub slc: Option<SlcParams>,
    /// The state after long use.
    pub worn: WornMap,
}

impl SsdParams {
    pub(crate) fn parse(root: &mut ProfileSection<'_>) -> SectionResult<Self> {
        let command_ns = root.micros_or("command_us", 0, TIME_NS)?;
        let sector_ns = root.link_ns("link_mb_per_s")?;
        let write_sector_ns = root.optional_link_ns("link_write_mb_per_s")?;
        let params = Self {
            capacity_bytes: root.capacity("capacity_mb")?,
            channels: root.integer("channels", CHANNELS)?,
            dies_per_channel: root.integer_or("dies_per_channel", 1, DIES_PER_CHANNEL)?,
            planes: root.integer_or("planes", 1, PLANES)?,
            stripe_sectors: root.kib("stripe_kib", STRIPE_SECTORS)?,
            read_ns: read_page_times(root, "read_us")?,
            program_ns: read_page_times(root, "program_us")?,
            channel_sector_ns: root.optional_link_ns("channel_mb_per_s")?.unwrap_or(0.0),
            suspend_ns: read_suspend(root)?,
            command_ns,
            write_command_ns: root.micros_or("write_command_us", command_ns, TIME_NS)?,
            read_overhead_ns: root.micros("read_overhead_us", TIME_NS)?,
            write_overhead_ns: root.micros("write_overhead_us", TIME_NS)?,
            flush_ns: root.micros("flush_us", TIME_NS)?,
            journal_ns: root.micros_or("journal_us", 0, TIME_NS)?,
            flush_queued: root.flag_or("flush_queued", true)?,
            sector_ns,
            write_sector_ns: write_sector_ns.unwrap_or(sector_ns),
            cache_sectors: root.kib("write_cache_kib", CACHE_SECTORS)?,
            power_loss_protection: root.flag("power_loss_protection")?,
            reports_write_back: root.flag_or("reports_write_back", false)?,
            cleaning: CleaningParams::parse(root)?,
            slc: SlcParams::parse(root)?,
            worn: WornMap::default(),
        };
        params.validate()?;
        Ok(params)
    }

    /// Checks what must fit together; each field by itself was checked when it was read.
    fn validate(&self) -> SectionResult<()> {
        if self.power_loss_protection && self.cache_sectors == 0 {
            return Err(ParamsError::new(
                "power_loss_protection = true protects nothing: write_cache_kib = 0",
                "give write_cache_kib from 1 to 1073741824, or power_loss_protection = false",
            ));
        }
        match &self.cleaning {
            Some(cleaning) => {
                cleaning.validate(&self.flash())?;
                self.slc.as_ref().map_or(Ok(()), SlcParams::validate)
            }
            None if self.slc.is_some() => Err(ParamsError::new(
                "slc_cache needs a translation layer, and there is no table cleaning",
                "add the table cleaning, or remove slc_cache",
            )),
            None => Ok(()),
        }
    }

    /// Whether completed writes may be lost with the power until a flush, as far as the kernel knows.
    pub(crate) fn write_cache(&self) -> bool {
        self.reports_write_back || (self.cache_sectors > 0 && !self.power_loss_protection)
    }

    pub(super) fn flash(&self) -> FlashSizes {
        FlashSizes {
            capacity_bytes: self.capacity_bytes,
            dies: self.dies(),
            die_stripe_sectors: self.die_stripe_sectors(),
        }
    }

    /// Dies on all channels.
    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Sectors that a die reads or programs at once: a page of every plane.
    pub fn die_stripe_sectors(&self) -> u64 {
        self.stripe_sectors * u64::from(self.planes)
    }
}

/// Times by kind of page: one number for all, or one for each.
fn read_page_times(root: &mut ProfileSection<'_>, key: &'static str) -> SectionResult<Vec<Nanos>> {
    let times_us = root.numbers(key, MOST_PAGE_TYPES, range_in_micros(&TIME_NS))?;
    Ok(times_us.into_iter().map(nanos_of_micros).collect())
}

fn read_suspend(root: &mut ProfileSection<'_>) -> SectionResult<Option<Nanos>> {
    root.optional("suspend_us", |root| root.micros("suspend_us", TIME_NS))
}

// Flash used with one bit a cell for incoming writes: fast until it is full; folded into the rest when idle.

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
}

impl SlcParams {
    /// Reads the table `slc_cache`, if there is one.
    pub(crate) fn parse(root: &mut ProfileSection<'_>) -> SectionResult<Option<Self>> {
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
        };
        // The one way that is modelled; profiles state it.
        table.optional("when_full", |slc| {
            slc.word("when_full", &["direct"]).map(drop)
        })?;
        table.finish()?;
        Ok(Some(params))
    }

    pub(super) fn validate(&self) -> SectionResult<()> {
        if self.full_size_bytes > self.size_bytes {
            return Err(ParamsError::new(
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

// The state after long use, computed once for all devices built from a profile or from its copies.

/// The map of a device whose whole space was overwritten at random, computed at the first request for it.
#[derive(Clone, Debug, Default)]
pub struct WornMap(Arc<OnceLock<KeptWornMap>>);

/// A map and the parameters that determine it.
#[derive(Debug)]
struct KeptWornMap {
    flash: FlashSizes,
    cleaning: CleaningParams,
    ftl: FlashTranslationLayer,
}

impl WornMap {
    /// A copy of it, for a device of these parameters. Parameters other than the first device's get their own
    /// map.
    pub(super) fn copy(
        &self,
        flash: &FlashSizes,
        cleaning: &CleaningParams,
    ) -> FlashTranslationLayer {
        let wear_in = || {
            let mut ftl = FlashTranslationLayer::new(flash, cleaning);
            ftl.wear_in(1.0);
            ftl.shared()
        };
        let kept = self.0.get_or_init(|| KeptWornMap {
            flash: *flash,
            cleaning: cleaning.clone(),
            ftl: wear_in(),
        });
        if kept.flash == *flash && kept.cleaning == *cleaning {
            kept.ftl.clone()
        } else {
            wear_in()
        }
    }
}

/// The parameters determine it: those that differ in nothing else are equal.
impl PartialEq for WornMap {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
