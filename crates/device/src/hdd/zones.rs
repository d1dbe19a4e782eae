//! Zones: cylinders with equally long tracks, and the sectors in them that hold no data.

use super::bounds;
use crate::problem::{ParamsError, SectionResult};
use crate::section::Section;

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
        let most_sectors = *bounds::SECTORS_PER_TRACK.end();
        let angle = 0.0..=f64::from(most_sectors);
        let mut count = |key| section.integer_or(key, 0, bounds::UNUSED);
        let zone = Self {
            spares_per_cylinder: count("spares_per_cylinder")?,
            spares: count("spares")?,
            spare_tracks: count("spare_tracks")?,
            reserved_sectors: count("reserved_sectors")?,
            slips: count("slips")?,
            slipped_tracks: count("slipped_tracks")?,
            spares_per_track: section.integer_or("spares_per_track", 0, 0..=most_sectors / 2)?,
            first_cylinder: section.integer("first_cylinder", bounds::FIRST_CYLINDER)?,
            cylinders: section.integer("cylinders", bounds::CYLINDERS)?,
            sectors_per_track: section.integer("sectors_per_track", bounds::SECTORS_PER_TRACK)?,
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
            return Err(ParamsError::new(
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

/// Refuses zones that are too many or not in order.
pub(super) fn check_order(zones: &[ZoneParams]) -> SectionResult<()> {
    let overlap = zones
        .windows(2)
        .position(|w| w[1].first_cylinder < w[0].first_cylinder + w[0].cylinders);
    match overlap {
        Some(index) => Err(ParamsError::new(
            format!(
                "zones[{}].first_cylinder lies in the zone before it",
                index + 1
            ),
            "give zones in ascending order, without overlap",
        )),
        None if zones.len() > ZONES_MAX => Err(ParamsError::new(
            format!("zones has {} entries", zones.len()),
            format!("give at most {ZONES_MAX}"),
        )),
        None => Ok(()),
    }
}
