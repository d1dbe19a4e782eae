//! Zones: cylinders with equally long tracks, and the sectors in them that hold no data.

use crate::problem::{Problem, SectionResult};
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
    /// All zones of a profile, after a check that they are in order and hold data.
    pub(super) fn parse_all(root: &mut Section<'_>, surfaces: u32) -> SectionResult<Vec<Self>> {
        let parse = |section| Self::parse(section, surfaces);
        let zones = root
            .sections("zones")?
            .into_iter()
            .map(parse)
            .collect::<SectionResult<Vec<_>>>()?;
        check_order(&zones)?;
        Ok(zones)
    }

    fn parse(mut section: Section<'_>, surfaces: u32) -> SectionResult<Self> {
        let sectors_per_track = section.integer("sectors_per_track", 8..=100_000)?;
        let turn = sectors_per_track as f64;
        let cylinder = sectors_per_track * u64::from(surfaces);
        let mut count = |key, max| section.integer_or(key, 0, 0..=max);
        let spare_tracks = count("spare_tracks", 1 << 40)?;
        let zone = Self {
            spares_per_track: count("spares_per_track", sectors_per_track / 2)? as u32,
            spares_per_cylinder: count("spares_per_cylinder", cylinder / 2)?,
            spares: count("spares", 1 << 40)?,
            spare_tracks,
            reserved_sectors: count("reserved_sectors", 1 << 40)?,
            slips: count("slips", 1 << 40)?,
            slipped_tracks: count("slipped_tracks", spare_tracks)?,
            first_cylinder: section.integer("first_cylinder", 0..=10_000_000)? as u32,
            cylinders: section.integer("cylinders", 1..=10_000_000)? as u32,
            sectors_per_track: sectors_per_track as u32,
            offset_sectors: section.number_or("offset_sectors", 0.0, 0.0..=turn)?,
            track_skew_sectors: section.number("track_skew_sectors", 0.0..=turn)?,
            cylinder_skew_sectors: section.number("cylinder_skew_sectors", 0.0..=turn)?,
        };
        let name = section.name("spares");
        section.finish()?;
        zone.require_data(&name, surfaces)?;
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
