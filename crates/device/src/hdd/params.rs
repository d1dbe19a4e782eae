//! Parameters of the hard disk and how a profile gives them.

use std::sync::Arc;

use super::bounds;
use super::seek::SeekCurve;
use crate::Nanos;
use crate::params_error::{ParamsError, SectionResult, require_in_range};
use crate::profile_section::ProfileSection;

/// Parameters of [`super::HardDisk`].
#[derive(Clone, Debug, PartialEq)]
pub struct HddParams {
    /// Revolutions per minute.
    pub rpm: f64,
    /// Recording surfaces, one head each.
    pub surfaces: u32,
    /// Time to change to another head of the same cylinder.
    pub head_switch_ns: Nanos,
    /// Added to every seek and head switch before a write; real drives have negative ones.
    pub write_settle_ns: i64,
    /// Least time to position for a read that misses, even on the track where the head was.
    pub read_settle_ns: Nanos,
    /// Whether odd cylinders run from the last surface to the first.
    pub serpentine: bool,
    /// Seek time by distance.
    pub seek: SeekCurve,
    /// Zones from the outer edge in.
    pub zones: Vec<ZoneParams>,
    /// Segments and read-ahead.
    pub cache: DiskCacheParams,
    /// Whether writes are reported when in the cache.
    pub write_cache: bool,
    /// Command handling times.
    pub overhead: OverheadParams,
    /// Time the host bus takes for a sector.
    pub bus_sector_ns: f64,
    /// Command queue.
    pub queue: QueueParams,
}

/// The buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskCacheParams {
    /// Read segments; 0 for no read cache.
    pub segments: u32,
    /// Size of each.
    pub segment_sectors: u32,
    /// How far a read is continued while the disk has nothing else to do.
    pub readahead_sectors: u32,
    /// Capacity for writes that were reported but are not yet on the medium.
    pub write_sectors: u32,
    /// Separate stretches of such writes.
    pub write_segments: u32,
    /// Whether the disk reads ahead only behind a read that continues the read just before it.
    pub readahead_if_sequential: bool,
    /// What ends reading ahead, besides `readahead_sectors`.
    pub readahead_to: ReadaheadEnd,
    /// Whether a read keeps its track from the head's arrival to the end, rather than the sectors after it.
    pub read_on_arrival: bool,
}

/// Where reading ahead ends at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadaheadEnd {
    /// Where the segment is full.
    Segment,
    /// At the end of the track of the read's last sector.
    Track,
    /// At the end of the cylinder of the read's last sector.
    Cylinder,
}

/// Time of a command before anything moves, by kind, by whether the cache serves it, and by what came before.
///
/// For a write, "after write" holds if it continues, in sequence, the write just before it: on the measured
/// drives of the DiskSim set other writes after a write take as long as after a read.
#[derive(Clone, Debug, PartialEq)]
pub struct OverheadParams {
    /// `[hit, miss][after read, after write]`
    pub read_ns: [[Nanos; 2]; 2],
    /// `[hit, miss][after read, after write]`
    pub write_ns: [[Nanos; 2]; 2],
    /// After the last byte of a read.
    pub read_completion_ns: Nanos,
    /// After the last byte of a write.
    pub write_completion_ns: Nanos,
    /// A flush with nothing to write, a discard, and a command of no sectors.
    pub flush_ns: Nanos,
}

/// The command queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueParams {
    /// Commands the drive chooses among; later ones wait in order of arrival.
    pub depth: u32,
    /// How the drive chooses the next command.
    pub policy: QueuePolicy,
    /// A command older than this is served next.
    pub age_limit_ns: Nanos,
    /// Whether a flush holds back every command that comes after it until it ends, as one that cannot be queued
    /// (ATA) does; otherwise the others go on while it waits.
    pub flush_drains: bool,
}

/// How the drive chooses among queued commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePolicy {
    /// The oldest.
    Fcfs,
    /// The one whose first sector is reached first.
    Sptf,
}

impl HddParams {
    pub(crate) fn parse(root: &mut ProfileSection<'_>) -> SectionResult<Self> {
        let mut mechanics = root.section("mechanics")?;
        let surfaces = mechanics.integer("surfaces", bounds::SURFACES)?;
        let zones = ZoneParams::parse_all(root)?;
        let cylinders = zones
            .last()
            .map_or(0, |zone| zone.first_cylinder + zone.cylinders);
        let params = Self {
            rpm: mechanics.number("rpm", bounds::RPM)?,
            surfaces,
            head_switch_ns: mechanics.micros("head_switch_us", bounds::SETTLE_NS)?,
            write_settle_ns: (mechanics.number("write_settle_us", bounds::WRITE_SETTLE_US)? * 1e3)
                .round() as i64,
            read_settle_ns: mechanics.micros_or("read_settle_us", 0, bounds::SETTLE_NS)?,
            serpentine: mechanics.flag("serpentine")?,
            seek: SeekCurve::parse(root.section("seek")?, cylinders)?,
            zones,
            cache: DiskCacheParams::parse(root.section("cache")?)?,
            write_cache: root.flag("write_cache")?,
            overhead: OverheadParams::parse(root.section("overhead")?)?,
            bus_sector_ns: read_bus(root.section("bus")?)?,
            queue: QueueParams::parse(root.section("queue")?)?,
        };
        mechanics.finish()?;
        params.check()?;
        Ok(params)
    }

    /// Seek time for every distance, in nanoseconds.
    pub(crate) fn seek_ns(&self) -> Arc<[u32]> {
        let last = self.zones.last();
        let cylinders = last.map_or(0, |zone| zone.first_cylinder + zone.cylinders);
        self.seek.by_distance(cylinders)
    }

    /// Sectors that hold data.
    pub fn capacity_sectors(&self) -> u64 {
        self.zones
            .iter()
            .map(|zone| zone.data_sectors(self.surfaces))
            .sum()
    }
}

fn read_bus(mut section: ProfileSection<'_>) -> SectionResult<f64> {
    let sector_ns = section.number("sector_us", bounds::BUS_SECTOR_US)? * 1e3;
    section.finish()?;
    Ok(sector_ns)
}

impl ReadaheadEnd {
    fn parse(section: &mut ProfileSection<'_>) -> SectionResult<Self> {
        let key = "readahead_to";
        let read = |section: &mut ProfileSection<'_>| {
            let word = section.word(key, &["segment", "track", "cylinder"])?;
            Ok(word.to_owned())
        };
        let word = section.optional(key, read)?.unwrap_or_default();
        Ok(match word.as_str() {
            "track" => Self::Track,
            "cylinder" => Self::Cylinder,
            _ => Self::Segment,
        })
    }
}

impl DiskCacheParams {
    fn parse(mut section: ProfileSection<'_>) -> SectionResult<Self> {
        let params = Self {
            segments: section.integer("segments", bounds::SEGMENTS)?,
            segment_sectors: section.integer("segment_sectors", bounds::SEGMENT_SECTORS)?,
            readahead_sectors: section.integer("readahead_sectors", bounds::CACHE_SECTORS)?,
            write_sectors: section.integer("write_sectors", bounds::CACHE_SECTORS)?,
            write_segments: section.integer("write_segments", bounds::WRITE_SEGMENTS)?,
            readahead_if_sequential: section.flag_or("readahead_if_sequential", false)?,
            readahead_to: ReadaheadEnd::parse(&mut section)?,
            read_on_arrival: section.flag_or("read_on_arrival", false)?,
        };
        section.finish()?;
        Ok(params)
    }
}

impl OverheadParams {
    /// Handling of a read hit: the value after a read holds for one that continues the read just before it; others
    /// after a read must be looked for in the buffer and take the longer of both.
    pub(crate) fn read_hit_ns(&self, sequential: bool, after_write: bool) -> Nanos {
        let [continued, other] = self.read_ns[0];
        match (after_write, sequential) {
            (true, _) => other,
            (false, true) => continued,
            (false, false) => continued.max(other),
        }
    }

    fn parse(mut section: ProfileSection<'_>) -> SectionResult<Self> {
        let mut time = |key| section.micros(key, bounds::OVERHEAD_NS);
        let params = Self {
            read_ns: [
                [
                    time("read_hit_after_read_us")?,
                    time("read_hit_after_write_us")?,
                ],
                [
                    time("read_miss_after_read_us")?,
                    time("read_miss_after_write_us")?,
                ],
            ],
            write_ns: [
                [
                    time("write_hit_after_read_us")?,
                    time("write_hit_after_write_us")?,
                ],
                [
                    time("write_miss_after_read_us")?,
                    time("write_miss_after_write_us")?,
                ],
            ],
            read_completion_ns: time("read_completion_us")?,
            write_completion_ns: time("write_completion_us")?,
            flush_ns: time("flush_us")?,
        };
        section.finish()?;
        Ok(params)
    }
}

impl QueueParams {
    fn parse(mut section: ProfileSection<'_>) -> SectionResult<Self> {
        let params = Self {
            depth: section.integer("depth", bounds::QUEUE_DEPTH)?,
            policy: match section.word("policy", &["fcfs", "sptf"])? {
                "sptf" => QueuePolicy::Sptf,
                _ => QueuePolicy::Fcfs,
            },
            age_limit_ns: section.micros("age_limit_us", bounds::AGE_LIMIT_NS)?,
            flush_drains: section
                .optional("flush", |queue| {
                    Ok(queue.word("flush", &["queued", "drain"])? == "drain")
                })?
                .unwrap_or(false),
        };
        section.finish()?;
        Ok(params)
    }
}

// What must fit together; each field by itself was checked when it was read.

impl HddParams {
    fn check(&self) -> SectionResult<()> {
        self.zones
            .iter()
            .enumerate()
            .try_for_each(|(index, zone)| zone.check(index, self.surfaces))?;
        check_zone_order(&self.zones)?;
        self.seek.check()?;
        if self.write_cache && self.cache.write_sectors == 0 {
            return Err(ParamsError::new(
                "write_cache = true with cache.write_sectors = 0",
                "give cache.write_sectors from 1",
            ));
        }
        Ok(())
    }
}

impl ZoneParams {
    fn check(&self, index: usize, surfaces: u32) -> SectionResult<()> {
        let name = |field: &str| format!("zones[{index}].{field}");
        let turn = self.sectors_per_track;
        let cylinder = u64::from(turn) * u64::from(surfaces);
        require_in_range(
            &name("spares_per_track"),
            self.spares_per_track,
            0..=turn / 2,
        )?;
        let spares = 0..=cylinder / 2;
        require_in_range(
            &name("spares_per_cylinder"),
            self.spares_per_cylinder,
            spares,
        )?;
        let tracks = 0..=self.spare_tracks;
        require_in_range(&name("slipped_tracks"), self.slipped_tracks, tracks)?;
        for (field, sectors) in [
            ("offset_sectors", self.offset_sectors),
            ("track_skew_sectors", self.track_skew_sectors),
            ("cylinder_skew_sectors", self.cylinder_skew_sectors),
        ] {
            require_in_range(&name(field), sectors, 0.0..=f64::from(turn))?;
        }
        self.require_data(&name("spares"), surfaces)
    }
}

impl SeekCurve {
    fn check(&self) -> SectionResult<()> {
        match self {
            Self::Table(rows) => {
                if rows.is_empty() || rows.windows(2).any(|pair| pair[1].0 <= pair[0].0) {
                    return Err(ParamsError::new(
                        "seek.table_us is empty or not ascending",
                        "give pairs in ascending distance",
                    ));
                }
                Ok(())
            }
            Self::LeeKatz {
                single_us,
                average_us,
                full_us,
                ..
            } => {
                let most_us = *bounds::SEEK_US.end();
                require_in_range("seek.average_us", *average_us, *single_us..=most_us)?;
                require_in_range("seek.full_us", *full_us, *average_us..=most_us)
            }
        }
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
    pub(super) fn parse_all(root: &mut ProfileSection<'_>) -> SectionResult<Vec<Self>> {
        root.sections("zones")?
            .into_iter()
            .map(Self::parse)
            .collect()
    }

    fn parse(mut section: ProfileSection<'_>) -> SectionResult<Self> {
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
pub(super) fn check_zone_order(zones: &[ZoneParams]) -> SectionResult<()> {
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
