//! The closed form of a sector's place against counting, track by track.

use super::*;
use crate::hdd::ZoneParams;
use crate::{Params, Profile};

const SURFACES: u32 = 3;

/// A zone with spares on every track and at its end.
fn zone(first_cylinder: u32, cylinders: u32, sectors_per_track: u32, spares: u64) -> ZoneParams {
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
    let Params::Hdd(params) = profile.params() else {
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
