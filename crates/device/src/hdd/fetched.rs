//! A read from the medium, and the other sectors of its track that the head passed.

use super::geometry::Place;
use super::mechanics::{Arm, Mechanics};
use crate::Nanos;

/// A read that has been fetched from the medium.
pub(crate) struct Fetched<'a> {
    pub(crate) sector: u64,
    pub(crate) sectors: u64,
    pub(crate) place: &'a Place,
    /// When the head came to the track and when it began with the sector.
    pub(crate) arrived: Nanos,
    pub(crate) begin: Nanos,
    /// When it was done, and where the arm was then.
    pub(crate) end: (Nanos, Arm),
    /// Whether it continues the read just before it.
    pub(crate) sequential: bool,
}

impl Fetched<'_> {
    /// Sectors of the track before the first one.
    fn before_on_track(&self, mechanics: &Mechanics) -> u64 {
        let zone = &mechanics.geometry.zones[self.place.zone as usize];
        zone.track_sectors()
            .saturating_sub(self.place.left_on_track)
            .min(self.sector - zone.first_sector)
    }

    /// Sectors of the track that passed between the head's arrival and the first one.
    pub(crate) fn passed_before(&self, mechanics: &Mechanics) -> u64 {
        mechanics
            .sectors_in(self.place.zone, self.begin - self.arrived)
            .min(self.before_on_track(mechanics))
    }

    /// When the whole track will have passed since the head's arrival, and the track's first sector; nothing for
    /// a read of more than one track.
    pub(crate) fn turn(&self, mechanics: &Mechanics) -> Option<(Nanos, u64)> {
        (self.sectors <= self.place.left_on_track).then(|| {
            (
                self.arrived + mechanics.turn_ns(),
                self.sector - self.before_on_track(mechanics),
            )
        })
    }

    /// Where the head is after the last sector, and when: at the next sector if it reads on, or else where it
    /// is.
    pub(crate) fn behind(&self, reads_on: bool, mechanics: &Mechanics) -> (Place, Nanos) {
        let (ended, arm) = self.end;
        if !reads_on {
            return (*self.place, ended);
        }
        let place = mechanics
            .geometry
            .after(self.place, self.sector, self.sectors);
        if Arm::from(&place) == arm {
            (place, ended)
        } else {
            (place, mechanics.reach(ended, arm, &place, false))
        }
    }
}
