//! Time to reach a sector and to pass over sectors: seek, head switch, settling, rotation.
//!
//! The rotation phase follows from absolute time alone. The platter absorbs lateness of the caller, as in a
//! real drive.

use std::sync::Arc;

use super::geometry::{Angle, Geometry, SectorPlace, TURN};
use super::params::HddParams;
use crate::Nanos;

/// A head that comes this late still catches the sector: the gap before its data.
const GAP_NS: Nanos = 100;

/// Binary places of the time of a sector.
const FRACTION_BITS: u32 = 20;

/// Where the heads are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ArmPosition {
    pub(crate) cylinder: u32,
    pub(crate) surface: u32,
}

impl From<&SectorPlace> for ArmPosition {
    fn from(place: &SectorPlace) -> Self {
        Self {
            cylinder: place.cylinder,
            surface: place.surface,
        }
    }
}

/// What a transfer costs in one zone.
#[derive(Debug)]
struct ZoneTransferTimes {
    /// Time of a sector, with [`FRACTION_BITS`] binary places.
    sector: u64,
    /// Time from the end of a track to the start of the next, `[read, write]`.
    track_gap_ns: [Nanos; 2],
    /// The same between the last track of a cylinder and the first of the next.
    cylinder_gap_ns: [Nanos; 2],
}

/// Sectors that pass the head in order, gaps between tracks included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassingSectors {
    pub(crate) sector: u64,
    pub(crate) place: SectorPlace,
    /// When that sector begins to pass.
    pub(crate) begin: Nanos,
}

/// Moving parts and the platter's phase.
#[derive(Debug)]
pub(crate) struct DiskMechanics {
    pub(crate) geometry: Geometry,
    turn_ns: Nanos,
    /// Angle the platter turns in a nanosecond.
    speed: Angle,
    phase: Angle,
    gap_angle: Angle,
    /// Time by distance; disks of one kind share the table, so that it stays in the processor's cache.
    seek_ns: Arc<[u32]>,
    head_switch_ns: Nanos,
    settle_ns: i64,
    read_settle_ns: Nanos,
    rates: Vec<ZoneTransferTimes>,
}

impl DiskMechanics {
    /// `phase` is the platter's angle at time 0, `seek_ns` the table of [`HddParams::seek_ns`].
    pub(crate) fn new(params: &HddParams, phase: Angle, seek_ns: Arc<[u32]>) -> Self {
        let geometry = Geometry::new(params);
        let turn_ns = 60e9 / params.rpm;
        let speed = TURN / turn_ns;
        let mut mechanics = Self {
            geometry,
            turn_ns: turn_ns.round() as Nanos,
            speed: speed as Angle,
            phase,
            gap_angle: (speed * GAP_NS as f64) as Angle,
            seek_ns,
            head_switch_ns: params.head_switch_ns,
            settle_ns: params.write_settle_ns,
            read_settle_ns: params.read_settle_ns,
            rates: Vec::new(),
        };
        mechanics.rates = mechanics
            .geometry
            .zones
            .iter()
            .map(|zone| mechanics.rate(zone))
            .collect();
        mechanics
    }

    fn rate(&self, zone: &super::geometry::TrackZone) -> ZoneTransferTimes {
        let scaled = (u128::from(zone.sector_angle) * u128::from(self.turn_ns)) << FRACTION_BITS;
        let gap = |angle, moving: Nanos| {
            [false, true].map(|write| {
                let turning = self.turning_ns(angle);
                let moving = self.settled(moving, write);
                turning
                    + moving
                        .saturating_sub(turning + GAP_NS)
                        .div_ceil(self.turn_ns)
                        * self.turn_ns
            })
        };
        let next_cylinder_ns = Nanos::from(*self.seek_ns.get(1).unwrap_or(&0));
        ZoneTransferTimes {
            sector: (scaled >> 64) as u64,
            track_gap_ns: gap(zone.track_gap, self.head_switch_ns),
            cylinder_gap_ns: gap(zone.cylinder_gap, next_cylinder_ns),
        }
    }

    /// Time from `arm` to a track: the longer of seek and head switch, and settling if it is for a write.
    #[inline]
    pub(crate) fn move_ns(&self, arm: ArmPosition, place: &SectorPlace, write: bool) -> Nanos {
        let distance = arm.cylinder.abs_diff(place.cylinder);
        let seek = Nanos::from(self.seek_ns[distance as usize]);
        let switch = if arm.surface == place.surface {
            0
        } else {
            self.head_switch_ns
        };
        let moving = seek.max(switch);
        if moving == 0 {
            0
        } else {
            self.settled(moving, write)
        }
    }

    /// Time from `arm` to the track of a read that missed.
    #[inline]
    pub(crate) fn read_move_ns(&self, arm: ArmPosition, place: &SectorPlace) -> Nanos {
        self.move_ns(arm, place, false).max(self.read_settle_ns)
    }

    #[inline]
    fn settled(&self, moving: Nanos, write: bool) -> Nanos {
        if write {
            moving.saturating_add_signed(self.settle_ns)
        } else {
            moving
        }
    }

    /// Time from `at` until the platter is at `angle`.
    #[inline]
    pub(crate) fn wait_ns(&self, at: Nanos, angle: Angle) -> Nanos {
        let now = at.wrapping_mul(self.speed).wrapping_add(self.phase);
        let ahead = angle.wrapping_sub(now).wrapping_add(self.gap_angle);
        self.turning_ns(ahead).saturating_sub(GAP_NS)
    }

    /// When the first sector at `place` begins to pass, for a head that is free at `at`.
    #[inline]
    pub(crate) fn reach(
        &self,
        at: Nanos,
        arm: ArmPosition,
        place: &SectorPlace,
        write: bool,
    ) -> Nanos {
        let there = at + self.move_ns(arm, place, write);
        there + self.wait_ns(there, place.angle)
    }

    /// The first of several places that the heads reach; of equals, the first. Each comes with the time from
    /// which it can be sought and whether it is to be written.
    pub(crate) fn reached_first<'a>(
        &self,
        arm: ArmPosition,
        places: impl Iterator<Item = (Nanos, &'a SectorPlace, bool)>,
    ) -> Option<usize> {
        let (mut first, mut earliest) = (None, Nanos::MAX);
        for (index, (at, place, write)) in places.enumerate() {
            let there = at + self.move_ns(arm, place, write);
            if there < earliest {
                let reached = there + self.wait_ns(there, place.angle);
                if reached < earliest {
                    (first, earliest) = (Some(index), reached);
                }
            }
        }
        first
    }

    /// When `sectors` from `sector` at `place` have passed, having begun at `begin`; and where the arm is then.
    #[inline]
    pub(crate) fn pass(
        &self,
        begin: Nanos,
        sector: u64,
        place: &SectorPlace,
        sectors: u64,
        write: bool,
    ) -> (Nanos, ArmPosition) {
        if sectors <= place.left_on_track {
            return (
                begin + self.sectors_ns(place.zone, sectors),
                ArmPosition::from(place),
            );
        }
        self.pass_tracks(begin, sector, *place, sectors, write)
    }

    /// As [`DiskMechanics::pass`] over more than one track: one step for each stretch of even tracks, mostly a zone.
    fn pass_tracks(
        &self,
        begin: Nanos,
        sector: u64,
        place: SectorPlace,
        sectors: u64,
        write: bool,
    ) -> (Nanos, ArmPosition) {
        let (mut at, mut sector, mut place, mut rest) = (begin, sector, place, sectors);
        loop {
            let zone = &self.geometry.zones[place.zone as usize];
            let here = rest.min(zone.even_sectors(sector));
            let beyond = (here + zone.track_sectors()).saturating_sub(place.left_on_track + 1)
                / zone.track_sectors();
            let last_track = place.track + beyond;
            let surfaces = u64::from(self.geometry.surfaces);
            let cylinders = last_track / surfaces - place.track / surfaces;
            let rate = &self.rates[place.zone as usize];
            let way = usize::from(write);
            at += self.sectors_ns(place.zone, here)
                + (beyond - cylinders) * rate.track_gap_ns[way]
                + cylinders * rate.cylinder_gap_ns[way];
            let (cylinder, surface) = self.geometry.track_position(place.zone, last_track);
            let arm = ArmPosition { cylinder, surface };
            (rest, sector) = (rest - here, sector + here);
            if rest == 0 || sector >= self.geometry.capacity() {
                return (at, arm);
            }
            place = self.geometry.locate(sector);
            at = self.reach(at, arm, &place, write);
        }
    }

    /// Where the sectors that have passed by `now` end, those from `from` on up to `limit`; and the track that the
    /// head is on then. One step for each track.
    pub(crate) fn passed(
        &self,
        from: PassingSectors,
        limit: u64,
        now: Nanos,
    ) -> (u64, PassingSectors) {
        let mut track = from;
        loop {
            let here = (limit - track.sector).min(track.place.left_on_track);
            let end = track.begin + self.sectors_ns(track.place.zone, here);
            if now < end {
                let time = now.saturating_sub(track.begin);
                let part = self.sectors_in(track.place.zone, time).min(here);
                return (track.sector + part, track);
            }
            let sector = track.sector + here;
            if sector == limit || sector >= self.geometry.capacity() {
                return (sector, track);
            }
            let place = self.geometry.locate(sector);
            let begin = self.reach(end, ArmPosition::from(&track.place), &place, false);
            track = PassingSectors {
                sector,
                place,
                begin,
            };
        }
    }

    #[inline]
    pub(crate) fn sectors_ns(&self, zone: u32, sectors: u64) -> Nanos {
        (sectors * self.rates[zone as usize].sector) >> FRACTION_BITS
    }

    /// Time of a revolution.
    pub(crate) fn turn_ns(&self) -> Nanos {
        self.turn_ns
    }

    /// Whole sectors of a zone that pass in a time shorter than a few revolutions.
    pub(crate) fn sectors_in(&self, zone: u32, time: Nanos) -> u64 {
        (time << FRACTION_BITS) / self.rates[zone as usize].sector
    }

    #[inline]
    fn turning_ns(&self, angle: Angle) -> Nanos {
        ((u128::from(angle) * u128::from(self.turn_ns)) >> 64) as Nanos
    }
}
