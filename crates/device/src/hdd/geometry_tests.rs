//! The closed form of a sector's place against counting, track by track.

use super::*;
use crate::hdd::ZoneParams;
use crate::{Params, Profile};

const SURFACES: u32 = 3;

fn zone(first_cylinder: u32, cylinders: u32, sectors_per_track: u32, spares: u64) -> ZoneParams {
    ZoneParams {
        first_cylinder,
        cylinders,
        sectors_per_track,
        spares_per_track: 2,
        spares,
        slips: 0,
        offset_sectors: 5.0,
        track_skew_sectors: 7.0,
        cylinder_skew_sectors: 11.0,
    }
}

/// A disk of two small zones with a gap between them.
fn params(serpentine: bool) -> HddParams {
    let text = include_str!("../../../../python/tierwise/profiles/hdd-7k2.toml");
    let profile = Profile::parse(text, "hdd-7k2.toml").expect("a valid profile");
    let Params::Hdd(params) = profile.params() else {
        panic!("a disk")
    };
    HddParams {
        surfaces: SURFACES,
        serpentine,
        zones: vec![zone(0, 5, 40, 17), zone(8, 4, 30, 0)],
        ..*params.clone()
    }
}

/// Every data sector in order: cylinder, surface, angle in turns.
fn counted(params: &HddParams) -> Vec<(u32, u32, f64)> {
    let mut places = Vec::new();
    for zone in &params.zones {
        let (mut skew, start) = (zone.offset_sectors, places.len());
        for cylinder in 0..zone.cylinders {
            for order in 0..SURFACES {
                let surface = if params.serpentine && cylinder % 2 == 1 {
                    SURFACES - 1 - order
                } else {
                    order
                };
                for sector in 0..zone.sectors_per_track - zone.spares_per_track {
                    let turns = (f64::from(sector) + skew) / f64::from(zone.sectors_per_track);
                    places.push((zone.first_cylinder + cylinder, surface, turns.fract()));
                }
                let last = order == SURFACES - 1;
                skew += if last {
                    zone.cylinder_skew_sectors
                } else {
                    zone.track_skew_sectors
                };
            }
        }
        places.truncate(start + zone.data_sectors(SURFACES) as usize);
    }
    places
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
        for sectors in [1, 7, 37, 38, 50] {
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
