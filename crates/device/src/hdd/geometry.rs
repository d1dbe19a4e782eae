//! Where a sector is: from its number to cylinder, surface and angle, without a loop over sectors or tracks.
//!
//! Angles are fractions of a revolution in 64 bits, so that adding and subtracting wrap by themselves.
//!
//! Slipped sectors and tracks are known by number, not by place: they are taken as spread evenly over their zone.

#[cfg(test)]
#[path = "geometry_tests.rs"]
mod tests;

use super::params::HddParams;
use crate::hdd::params;
use crate::problem::{Problem, SectionResult};
use crate::section::Section;

/// A fraction of a revolution: 2⁶⁴ is a whole turn.
pub(crate) type Angle = u64;

/// 2⁶⁴ as a float.
pub(crate) const TURN: f64 = 18_446_744_073_709_551_616.0;

/// Angle of a number of sectors, `per_track` of which make a revolution.
fn angle(sectors: f64, per_track: u32) -> Angle {
    ((sectors / f64::from(per_track)).fract() * TURN) as Angle
}

/// Division by a constant as a multiplication: exact while `n · divisor < 2⁶⁴`.
#[derive(Clone, Copy, Debug)]
struct Divisor {
    divisor: u64,
    reciprocal: u64,
}

impl Divisor {
    fn new(divisor: u64) -> Self {
        Self {
            divisor,
            reciprocal: (u64::MAX / divisor).wrapping_add(1),
        }
    }

    /// Quotient and remainder. A divisor of 1 has no 64-bit reciprocal.
    fn split(self, n: u64) -> (u64, u64) {
        let quotient = if self.divisor == 1 {
            n
        } else {
            ((u128::from(n) * u128::from(self.reciprocal)) >> 64) as u64
        };
        (quotient, n - quotient * self.divisor)
    }
}

/// Tracks with equally many sectors.
#[derive(Clone, Debug)]
pub(crate) struct Zone {
    pub(crate) first_sector: u64,
    pub(crate) end_sector: u64,
    first_cylinder: u32,
    /// Sectors before the first one.
    reserved: u64,
    /// Data sectors, by cylinder and by track.
    per_cylinder: Divisor,
    per_track: Divisor,
    by_surface: Divisor,
    /// Slipped sectors before an offset, slipped tracks before a track: `count · share` in units of 2⁻⁶⁴.
    slips: u64,
    slipped_tracks: u64,
    /// Whether a cylinder ends with spare sectors, so that its last track is shorter.
    spares_in_cylinder: bool,
    pub(crate) sector_angle: Angle,
    offset: Angle,
    track_step: Angle,
    cylinder_step: Angle,
    /// From the end of a track's last data sector to the next track's first: in the cylinder, to the next one.
    pub(crate) track_gap: Angle,
    pub(crate) cylinder_gap: Angle,
}

/// A sector's place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) cylinder: u32,
    pub(crate) surface: u32,
    /// Where the sector begins.
    pub(crate) angle: Angle,
    pub(crate) zone: u32,
    /// Tracks before this one in the zone.
    pub(crate) track: u64,
    /// Data sectors from this one to the end of the track or of the zone, itself included.
    pub(crate) left_on_track: u64,
}

/// All zones, and a table that leads from a sector number to its zone.
#[derive(Debug)]
pub(crate) struct Geometry {
    pub(crate) zones: Vec<Zone>,
    pub(crate) surfaces: u32,
    serpentine: bool,
    /// Zone of the first sector of each stretch of 2^`shift` sectors.
    zone_of_stretch: Vec<u8>,
    shift: u32,
}

/// Entries aimed at in the zone table: enough that a stretch rarely spans two zones.
const STRETCHES: u64 = 4096;

impl Geometry {
    pub(crate) fn new(params: &HddParams) -> Self {
        let mut zones: Vec<Zone> = Vec::with_capacity(params.zones.len());
        for zone in &params.zones {
            let first_sector = zones.last().map_or(0, |before| before.end_sector);
            zones.push(Zone::new(zone, params.surfaces, first_sector));
        }
        let capacity = zones.last().map_or(0, |zone| zone.end_sector);
        let shift = (capacity / STRETCHES).max(1).ilog2();
        let ends = |zone: usize, sector: u64| zones[zone].end_sector <= sector;
        let mut zone = 0;
        let zone_of = |stretch: u64| {
            while zone + 1 < zones.len() && ends(zone, stretch << shift) {
                zone += 1;
            }
            zone as u8
        };
        let zone_of_stretch = (0..=capacity >> shift).map(zone_of).collect();
        Self {
            zones,
            surfaces: params.surfaces,
            serpentine: params.serpentine,
            zone_of_stretch,
            shift,
        }
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.zones.last().map_or(0, |zone| zone.end_sector)
    }

    /// The place of a sector; past the end, that of the last.
    #[inline]
    pub(crate) fn locate(&self, sector: u64) -> Place {
        let sector = sector.min(self.capacity() - 1);
        let mut index = self.zone_of_stretch[(sector >> self.shift) as usize] as usize;
        while self.zones[index].end_sector <= sector {
            index += 1;
        }
        self.zones[index].place(sector, index as u32, self.surfaces, self.serpentine)
    }

    /// The place `sectors` after `sector` at `place`.
    #[inline]
    pub(crate) fn after(&self, place: &Place, sector: u64, sectors: u64) -> Place {
        if sectors >= place.left_on_track {
            return self.locate(sector + sectors);
        }
        let step = self.zones[place.zone as usize].sector_angle;
        Place {
            angle: place.angle.wrapping_add(sectors.wrapping_mul(step)),
            left_on_track: place.left_on_track - sectors,
            ..*place
        }
    }

    /// The first sector behind the cylinder of `sector`, or behind its zone if that ends before.
    pub(crate) fn cylinder_end(&self, sector: u64) -> u64 {
        let place = self.locate(sector);
        let zone = &self.zones[place.zone as usize];
        let surfaces = u64::from(self.surfaces);
        let tracks = surfaces - 1 - place.track % surfaces;
        let end = sector + place.left_on_track + tracks * zone.track_sectors();
        end.min(sector + zone.even_sectors(sector))
    }

    /// Cylinder and surface of a zone's track.
    pub(crate) fn track_position(&self, zone: u32, track: u64) -> (u32, u32) {
        let (cylinder, order) = (
            track / u64::from(self.surfaces),
            track % u64::from(self.surfaces),
        );
        let surface = surface(cylinder, order, self.surfaces, self.serpentine);
        (
            self.zones[zone as usize].first_cylinder + cylinder as u32,
            surface,
        )
    }
}

#[inline]
fn surface(cylinder: u64, order: u64, surfaces: u32, serpentine: bool) -> u32 {
    if serpentine && cylinder & 1 == 1 {
        surfaces - 1 - order as u32
    } else {
        order as u32
    }
}

impl Zone {
    fn new(params: &ZoneParams, surfaces: u32, first_sector: u64) -> Self {
        let turn = params.sectors_per_track;
        let data_per_track = u64::from(turn - params.spares_per_track);
        let data_per_cylinder = data_per_track * u64::from(surfaces) - params.spares_per_cylinder;
        let data = params.data_sectors(surfaces);
        let tracks = u64::from(params.cylinders) * u64::from(surfaces);
        let evenly =
            |count: u64, among: u64| (u128::from(count) << 64).div_ceil(u128::from(among)) as u64;
        let track_skew = angle(params.track_skew_sectors, turn);
        let cylinder_skew = angle(params.cylinder_skew_sectors, turn);
        let spare = angle(f64::from(params.spares_per_track), turn);
        Self {
            first_sector,
            end_sector: first_sector + data,
            first_cylinder: params.first_cylinder,
            reserved: params.reserved_sectors,
            per_cylinder: Divisor::new(data_per_cylinder),
            per_track: Divisor::new(data_per_track),
            by_surface: Divisor::new(u64::from(surfaces)),
            slips: evenly(params.slips, data),
            slipped_tracks: evenly(params.slipped_tracks, tracks),
            spares_in_cylinder: params.spares_per_cylinder > 0,
            sector_angle: angle(1.0, turn),
            offset: angle(params.offset_sectors, turn),
            track_step: track_skew,
            cylinder_step: track_skew
                .wrapping_mul(u64::from(surfaces - 1))
                .wrapping_add(cylinder_skew),
            track_gap: spare.wrapping_add(track_skew),
            cylinder_gap: spare.wrapping_add(cylinder_skew),
        }
    }

    #[inline]
    fn place(&self, sector: u64, zone: u32, surfaces: u32, serpentine: bool) -> Place {
        let offset = sector - self.first_sector;
        let (cylinder, in_cylinder) = self.per_cylinder.split(self.physical(offset));
        let (order, in_track) = self.per_track.split(in_cylinder);
        let (cylinder, order) = self.slip(cylinder, order);
        let skew = cylinder
            .wrapping_mul(self.cylinder_step)
            .wrapping_add(order.wrapping_mul(self.track_step))
            .wrapping_add(self.offset);
        Place {
            cylinder: self.first_cylinder + cylinder as u32,
            surface: surface(cylinder, order, surfaces, serpentine),
            angle: in_track.wrapping_mul(self.sector_angle).wrapping_add(skew),
            zone,
            track: cylinder * u64::from(surfaces) + order,
            left_on_track: (self.per_track.divisor - in_track)
                .min(self.per_cylinder.divisor - in_cylinder)
                .min(self.end_sector - sector),
        }
    }

    /// Good sectors and slipped ones before `offset`.
    #[inline]
    fn physical(&self, offset: u64) -> u64 {
        let physical = self.reserved + offset;
        physical + ((u128::from(offset) * u128::from(self.slips)) >> 64) as u64
    }

    /// Where a track is with the slipped tracks before it.
    #[inline]
    fn slip(&self, cylinder: u64, order: u64) -> (u64, u64) {
        if self.slipped_tracks == 0 {
            return (cylinder, order);
        }
        let track = cylinder * self.by_surface.divisor + order;
        let slipped = ((u128::from(track) * u128::from(self.slipped_tracks)) >> 64) as u64;
        self.by_surface.split(track + slipped)
    }

    /// Data sectors from `sector` to the end of the stretch in which all tracks are equally long: the zone, or a
    /// cylinder with spares at its end.
    #[inline]
    pub(crate) fn even_sectors(&self, sector: u64) -> u64 {
        let rest = self.end_sector - sector;
        if !self.spares_in_cylinder {
            return rest;
        }
        let (_, in_cylinder) = self
            .per_cylinder
            .split(self.physical(sector - self.first_sector));
        rest.min(self.per_cylinder.divisor - in_cylinder)
    }

    /// Data sectors on a track.
    pub(crate) fn track_sectors(&self) -> u64 {
        self.per_track.divisor
    }
}

// Zones: cylinders with equally long tracks, and the sectors in them that hold no data.

const ZONES_MAX: usize = 256;

/// Cylinders with equally many sectors on each track.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneParams {
    /// Outermost cylinder.
    pub first_cylinder: u32,
    /// Number of cylinders.
    pub cylinders: u32,
    /// Sectors in one revolution.
    pub sectors_per_track: u32,
    /// Sectors at the end of each track that hold no data.
    pub spares_per_track: u32,
    /// Sectors at the end of each cylinder that hold no data.
    pub spares_per_cylinder: u64,
    /// Sectors at the end of the zone that hold no data.
    pub spares: u64,
    /// Tracks at the end of the zone that hold no data.
    pub spare_tracks: u64,
    /// Sectors at the start of the zone that hold no data.
    pub reserved_sectors: u64,
    /// Defective sectors that numbering skips; taken as spread evenly over the zone.
    pub slips: u64,
    /// Defective tracks that numbering skips, each in exchange for a spare one; taken as spread evenly over the zone.
    pub slipped_tracks: u64,
    /// Angle of the zone's first sector, in sectors after the index.
    pub offset_sectors: f64,
    /// Angle from a track's first sector to that of the next track of the cylinder, in sectors.
    pub track_skew_sectors: f64,
    /// Angle from the first sector of a cylinder's last track to that of the next cylinder's first, in sectors.
    pub cylinder_skew_sectors: f64,
}

impl ZoneParams {
    /// All zones of a profile; the disk's check tells whether they fit together.
    pub(super) fn parse_all(root: &mut Section<'_>) -> SectionResult<Vec<Self>> {
        root.sections("zones")?
            .into_iter()
            .map(Self::parse)
            .collect()
    }

    fn parse(mut section: Section<'_>) -> SectionResult<Self> {
        let most_sectors = *params::SECTORS_PER_TRACK.end();
        let angle = 0.0..=f64::from(most_sectors);
        let mut count = |key| section.integer_or(key, 0, params::UNUSED);
        let zone = Self {
            spares_per_cylinder: count("spares_per_cylinder")?,
            spares: count("spares")?,
            spare_tracks: count("spare_tracks")?,
            reserved_sectors: count("reserved_sectors")?,
            slips: count("slips")?,
            slipped_tracks: count("slipped_tracks")?,
            spares_per_track: section.integer_or("spares_per_track", 0, 0..=most_sectors / 2)?,
            first_cylinder: section.integer("first_cylinder", params::FIRST_CYLINDER)?,
            cylinders: section.integer("cylinders", params::CYLINDERS)?,
            sectors_per_track: section.integer("sectors_per_track", params::SECTORS_PER_TRACK)?,
            offset_sectors: section.number_or("offset_sectors", 0.0, angle.clone())?,
            track_skew_sectors: section.number("track_skew_sectors", angle.clone())?,
            cylinder_skew_sectors: section.number("cylinder_skew_sectors", angle)?,
        };
        section.finish()?;
        Ok(zone)
    }

    /// Refuses a zone without data; `name` is that of its spares.
    pub(super) fn require_data(&self, name: &str, surfaces: u32) -> SectionResult<()> {
        if self.data_sectors(surfaces) == 0 {
            return Err(Problem::new(
                format!("{name}, slips and reserved sectors leave no data sector"),
                "give fewer",
            ));
        }
        Ok(())
    }

    /// Sectors of the zone that hold data.
    pub fn data_sectors(&self, surfaces: u32) -> u64 {
        let per_track = u64::from(self.sectors_per_track - self.spares_per_track);
        let cylinders = u64::from(self.cylinders);
        let per_cylinder = u64::from(surfaces) * per_track - self.spares_per_cylinder;
        let none = self.spares + self.slips + self.reserved_sectors + self.spare_tracks * per_track;
        (cylinders * per_cylinder).saturating_sub(none)
    }
}

/// Refuses zones that are too many, too few or not in order.
pub(super) fn check_order(zones: &[ZoneParams]) -> SectionResult<()> {
    if zones.is_empty() {
        return Err(Problem::new("zones is empty", "give at least one zone"));
    }
    let overlap = zones
        .windows(2)
        .position(|w| w[1].first_cylinder < w[0].first_cylinder + w[0].cylinders);
    match overlap {
        Some(index) => Err(Problem::new(
            format!(
                "zones[{}].first_cylinder lies in the zone before it",
                index + 1
            ),
            "give zones in ascending order, without overlap",
        )),
        None if zones.len() > ZONES_MAX => Err(Problem::new(
            format!("zones has {} entries", zones.len()),
            format!("give at most {ZONES_MAX}"),
        )),
        None => Ok(()),
    }
}
