//! Where a sector is: from its number to cylinder, surface and angle, without a loop over sectors or tracks.
//!
//! Angles are fractions of a revolution in 64 bits, so that adding and subtracting wrap by themselves.
//!
//! Slipped sectors and tracks are known by number, not by place: they are taken as spread evenly over their zone.

use super::params::HddParams;
use super::params::ZoneParams;

/// A fraction of a revolution: 2⁶⁴ is a whole turn.
pub(crate) type Angle = u64;

/// 2⁶⁴ as a float.
pub(crate) const TURN: f64 = 18_446_744_073_709_551_616.0;

/// Angle of a number of sectors, `per_track` of which make a revolution.
fn angle_of_sectors(sectors: f64, per_track: u32) -> Angle {
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
pub(crate) struct TrackZone {
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
pub(crate) struct SectorPlace {
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
    pub(crate) zones: Vec<TrackZone>,
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
        let mut zones: Vec<TrackZone> = Vec::with_capacity(params.zones.len());
        for zone in &params.zones {
            let first_sector = zones.last().map_or(0, |before| before.end_sector);
            zones.push(TrackZone::new(zone, params.surfaces, first_sector));
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
    pub(crate) fn locate(&self, sector: u64) -> SectorPlace {
        let sector = sector.min(self.capacity() - 1);
        let mut index = self.zone_of_stretch[(sector >> self.shift) as usize] as usize;
        while self.zones[index].end_sector <= sector {
            index += 1;
        }
        self.zones[index].place(sector, index as u32, self.surfaces, self.serpentine)
    }

    /// The place `sectors` after `sector` at `place`.
    #[inline]
    pub(crate) fn after(&self, place: &SectorPlace, sector: u64, sectors: u64) -> SectorPlace {
        if sectors >= place.left_on_track {
            return self.locate(sector + sectors);
        }
        let step = self.zones[place.zone as usize].sector_angle;
        SectorPlace {
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

impl TrackZone {
    fn new(params: &ZoneParams, surfaces: u32, first_sector: u64) -> Self {
        let turn = params.sectors_per_track;
        let data_per_track = u64::from(turn - params.spares_per_track);
        let data_per_cylinder = data_per_track * u64::from(surfaces) - params.spares_per_cylinder;
        let data = params.data_sectors(surfaces);
        let tracks = u64::from(params.cylinders) * u64::from(surfaces);
        let evenly =
            |count: u64, among: u64| (u128::from(count) << 64).div_ceil(u128::from(among)) as u64;
        let track_skew = angle_of_sectors(params.track_skew_sectors, turn);
        let cylinder_skew = angle_of_sectors(params.cylinder_skew_sectors, turn);
        let spare = angle_of_sectors(f64::from(params.spares_per_track), turn);
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
            sector_angle: angle_of_sectors(1.0, turn),
            offset: angle_of_sectors(params.offset_sectors, turn),
            track_step: track_skew,
            cylinder_step: track_skew
                .wrapping_mul(u64::from(surfaces - 1))
                .wrapping_add(cylinder_skew),
            track_gap: spare.wrapping_add(track_skew),
            cylinder_gap: spare.wrapping_add(cylinder_skew),
        }
    }

    #[inline]
    fn place(&self, sector: u64, zone: u32, surfaces: u32, serpentine: bool) -> SectorPlace {
        let offset = sector - self.first_sector;
        let (cylinder, in_cylinder) = self.per_cylinder.split(self.physical(offset));
        let (order, in_track) = self.per_track.split(in_cylinder);
        let (cylinder, order) = self.slip(cylinder, order);
        let skew = cylinder
            .wrapping_mul(self.cylinder_step)
            .wrapping_add(order.wrapping_mul(self.track_step))
            .wrapping_add(self.offset);
        SectorPlace {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdd::ZoneParams;
    use crate::{DeviceParams, Profile};

    const SURFACES: u32 = 3;

    /// A zone with spares on every track and at its end.
    fn zone(
        first_cylinder: u32,
        cylinders: u32,
        sectors_per_track: u32,
        spares: u64,
    ) -> ZoneParams {
        ZoneParams {
            first_cylinder,
            cylinders,
            sectors_per_track,
            spares_per_track: 2,
            spares_per_cylinder: 0,
            spares,
            spare_tracks: 0,
            reserved_sectors: 0,
            slips: 0,
            slipped_tracks: 0,
            offset_sectors: 5.0,
            track_skew_sectors: 7.0,
            cylinder_skew_sectors: 11.0,
        }
    }

    /// A zone that begins with reserved sectors and ends with spare tracks, some of them in use for slipped ones.
    fn slipped(first_cylinder: u32) -> ZoneParams {
        ZoneParams {
            spare_tracks: 3,
            slipped_tracks: 2,
            reserved_sectors: 53,
            ..zone(first_cylinder, 6, 40, 0)
        }
    }

    /// A zone with spares at the end of each cylinder.
    fn by_cylinder(first_cylinder: u32) -> ZoneParams {
        ZoneParams {
            spares_per_track: 0,
            spares_per_cylinder: 9,
            ..zone(first_cylinder, 4, 30, 4)
        }
    }

    /// A disk of four small zones with a gap between the first two.
    fn params(serpentine: bool) -> HddParams {
        let text = include_str!("../../../../python/tierwise/data/devices/hdd-7k2.toml");
        let profile = Profile::parse(text, "hdd-7k2.toml").expect("a valid profile");
        let DeviceParams::Hdd(params) = profile.params() else {
            panic!("a disk")
        };
        HddParams {
            surfaces: SURFACES,
            serpentine,
            zones: vec![
                slipped(0),
                zone(8, 5, 40, 17),
                zone(13, 4, 30, 0),
                by_cylinder(17),
            ],
            ..*params.clone()
        }
    }

    /// Every data sector in order: cylinder, surface, angle in turns.
    fn counted(params: &HddParams) -> Vec<(u32, u32, f64)> {
        let mut places = Vec::new();
        for zone in &params.zones {
            let tracks = zone.cylinders * SURFACES;
            let mut in_zone = Vec::new();
            for track in (0..tracks).filter(|&track| !is_slipped(zone, track)) {
                in_zone.extend(track_places(zone, track, params.serpentine));
            }
            in_zone.drain(..zone.reserved_sectors as usize);
            in_zone.truncate(zone.data_sectors(SURFACES) as usize);
            places.extend(in_zone);
        }
        places
    }

    /// Whether a track is left out: the numbers of the good ones before it, slipped evenly, step over it.
    fn is_slipped(zone: &ZoneParams, track: u32) -> bool {
        let tracks = u64::from(zone.cylinders * SURFACES);
        (0..tracks).all(|good| good + good * zone.slipped_tracks / tracks != u64::from(track))
    }

    fn track_places(zone: &ZoneParams, track: u32, serpentine: bool) -> Vec<(u32, u32, f64)> {
        let (cylinder, order) = (track / SURFACES, track % SURFACES);
        let odd = serpentine && cylinder % 2 == 1;
        let surface = if odd { SURFACES - 1 - order } else { order };
        let skew = zone.offset_sectors
            + f64::from(cylinder * (SURFACES - 1) + order) * zone.track_skew_sectors
            + f64::from(cylinder) * zone.cylinder_skew_sectors;
        let spares = if order == SURFACES - 1 {
            zone.spares_per_cylinder as u32
        } else {
            0
        };
        let turns =
            |sector: u32| ((f64::from(sector) + skew) / f64::from(zone.sectors_per_track)).fract();
        (0..zone.sectors_per_track - zone.spares_per_track - spares)
            .map(|sector| (zone.first_cylinder + cylinder, surface, turns(sector)))
            .collect()
    }

    #[test]
    fn every_sector_is_where_counting_puts_it() {
        for serpentine in [false, true] {
            let params = params(serpentine);
            let geometry = Geometry::new(&params);
            let places = counted(&params);
            assert_eq!(geometry.capacity(), places.len() as u64);
            for (sector, (cylinder, surface, turns)) in (0..).zip(places) {
                let place = geometry.locate(sector);
                assert_eq!(
                    (place.cylinder, place.surface),
                    (cylinder, surface),
                    "sector {sector}"
                );
                let off = (place.angle as f64 / TURN - turns).abs();
                assert!(
                    off.min(1.0 - off) < 1e-9,
                    "sector {sector}: {} turns, counted {turns}",
                    place.angle as f64 / TURN
                );
            }
        }
    }

    #[test]
    fn the_place_after_some_sectors_is_the_place_of_that_sector() {
        let geometry = Geometry::new(&params(true));
        for sector in 0..geometry.capacity() - 50 {
            for sectors in [1, 7, 20, 37, 38, 50] {
                let (after, there) = (
                    geometry.after(&geometry.locate(sector), sector, sectors),
                    geometry.locate(sector + sectors),
                );
                assert_eq!(
                    (after.cylinder, after.surface, after.left_on_track),
                    (there.cylinder, there.surface, there.left_on_track)
                );
                assert!(
                    after.angle.abs_diff(there.angle) < 1 << 20,
                    "sector {sector} + {sectors}"
                );
            }
        }
    }

    #[test]
    fn a_sector_past_the_end_is_the_last() {
        let geometry = Geometry::new(&params(false));
        let last = geometry.locate(geometry.capacity() - 1);
        let past = geometry.locate(u64::MAX);
        assert_eq!(
            (last.cylinder, last.surface, last.angle),
            (past.cylinder, past.surface, past.angle)
        );
    }
}
