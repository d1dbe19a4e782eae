//! The fields of the geometry file that the import reads, and their valid ranges.

use std::ops::RangeInclusive;

use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct GeometryFile {
    pub(super) drive: String,
    pub(super) source: String,
    pub(super) surfaces: f64,
    pub(super) mechanics: GeometryFileMechanics,
    pub(super) zones: Vec<GeometryFileZone>,
    pub(super) sectors: f64,
    pub(super) lbn_mapping_scheme: f64,
    pub(super) cache: GeometryFileCache,
    pub(super) overheads_ms: GeometryFileOverheads,
}

#[derive(Deserialize)]
pub(super) struct GeometryFileMechanics {
    pub(super) rpm: f64,
    pub(super) head_switch_ms: f64,
    pub(super) write_settle_ms: f64,
}

#[derive(Deserialize)]
pub(super) struct GeometryFileZone {
    pub(super) first_cylinder: f64,
    pub(super) last_cylinder: f64,
    pub(super) sectors_per_track: f64,
    pub(super) first_sector_offset: f64,
    pub(super) track_skew_sectors: f64,
    pub(super) cylinder_skew_sectors: f64,
    pub(super) spare_sectors: f64,
    pub(super) slips: f64,
}

#[derive(Deserialize)]
pub(super) struct GeometryFileCache {
    pub(super) segments: f64,
    pub(super) max_write_segments: f64,
    pub(super) segment_sectors: f64,
    pub(super) readahead_max_sectors: f64,
    pub(super) fast_write_level: f64,
    pub(super) continuous_read: f64,
    pub(super) bus_ms_per_sector: f64,
}

#[derive(Deserialize)]
pub(super) struct GeometryFileOverheads {
    #[serde(rename = "Read hit over. after read")]
    pub(super) read_hit_after_read: f64,
    #[serde(rename = "Read hit over. after write")]
    pub(super) read_hit_after_write: f64,
    #[serde(rename = "Read miss over. after read")]
    pub(super) read_miss_after_read: f64,
    #[serde(rename = "Read miss over. after write")]
    pub(super) read_miss_after_write: f64,
    #[serde(rename = "Write hit over. after read")]
    pub(super) write_hit_after_read: f64,
    #[serde(rename = "Write hit over. after write")]
    pub(super) write_hit_after_write: f64,
    #[serde(rename = "Write miss over. after read")]
    pub(super) write_miss_after_read: f64,
    #[serde(rename = "Write miss over. after write")]
    pub(super) write_miss_after_write: f64,
    #[serde(rename = "Read completion overhead")]
    pub(super) read_completion: f64,
    #[serde(rename = "Write completion overhead")]
    pub(super) write_completion: f64,
}

/// Times in milliseconds that a drive of any age stays below. What others fitted may come out a little below 0.
const TIME_MS: RangeInclusive<f64> = -10.0..=100.0;
/// Angles in sectors, of any turn.
const ANGLE: RangeInclusive<f64> = -1e6..=1e6;

impl GeometryFile {
    pub(super) fn parse(geometry: &str) -> Result<Self, DriveFileError> {
        let drive: Self = serde_json::from_str(geometry)
            .map_err(|error| DriveFileError::geometry(error.to_string()))?;
        drive.check()?;
        Ok(drive)
    }

    fn check(&self) -> Result<(), DriveFileError> {
        require_field_in_range("surfaces", self.surfaces, 1.0..=64.0)?;
        require_field_in_range("sectors", self.sectors, 1.0..=1e12)?;
        require_field_in_range("mechanics.rpm", self.mechanics.rpm, 1e3..=3e4)?;
        require_field_in_range(
            "mechanics.head_switch_ms",
            self.mechanics.head_switch_ms,
            TIME_MS,
        )?;
        require_field_in_range(
            "mechanics.write_settle_ms",
            self.mechanics.write_settle_ms,
            TIME_MS,
        )?;
        if self.zones.is_empty() {
            return Err(DriveFileError::geometry("zones: empty, give at least one"));
        }
        for (index, zone) in self.zones.iter().enumerate() {
            zone.check(index)?;
        }
        self.cache.check()?;
        self.overheads_ms.check()
    }
}

impl GeometryFileZone {
    fn check(&self, index: usize) -> Result<(), DriveFileError> {
        for (field, value, range) in [
            ("first_cylinder", self.first_cylinder, 0.0..=1e7),
            (
                "last_cylinder",
                self.last_cylinder,
                self.first_cylinder..=1e7,
            ),
            ("sectors_per_track", self.sectors_per_track, 8.0..=1e5),
            ("first_sector_offset", self.first_sector_offset, ANGLE),
            ("track_skew_sectors", self.track_skew_sectors, ANGLE),
            ("cylinder_skew_sectors", self.cylinder_skew_sectors, ANGLE),
            ("spare_sectors", self.spare_sectors, 0.0..=1e9),
            ("slips", self.slips, 0.0..=1e9),
        ] {
            require_field_in_range(&format!("zones[{index}].{field}"), value, range)?;
        }
        Ok(())
    }
}

impl GeometryFileCache {
    fn check(&self) -> Result<(), DriveFileError> {
        for (field, value, range) in [
            ("segments", self.segments, 0.0..=256.0),
            ("max_write_segments", self.max_write_segments, 0.0..=4096.0),
            ("segment_sectors", self.segment_sectors, 1.0..=1e6),
            (
                "readahead_max_sectors",
                self.readahead_max_sectors,
                0.0..=1e6,
            ),
            ("fast_write_level", self.fast_write_level, 0.0..=2.0),
            ("continuous_read", self.continuous_read, 0.0..=4.0),
            ("bus_ms_per_sector", self.bus_ms_per_sector, 0.0..=10.0),
        ] {
            require_field_in_range(&format!("cache.{field}"), value, range)?;
        }
        Ok(())
    }
}

impl GeometryFileOverheads {
    fn check(&self) -> Result<(), DriveFileError> {
        for (field, value) in [
            ("Read hit over. after read", self.read_hit_after_read),
            ("Read hit over. after write", self.read_hit_after_write),
            ("Read miss over. after read", self.read_miss_after_read),
            ("Read miss over. after write", self.read_miss_after_write),
            ("Write hit over. after read", self.write_hit_after_read),
            ("Write hit over. after write", self.write_hit_after_write),
            ("Write miss over. after read", self.write_miss_after_read),
            ("Write miss over. after write", self.write_miss_after_write),
            ("Read completion overhead", self.read_completion),
            ("Write completion overhead", self.write_completion),
        ] {
            require_field_in_range(&format!("overheads_ms.\"{field}\""), value, TIME_MS)?;
        }
        Ok(())
    }
}

fn require_field_in_range(
    field: &str,
    value: f64,
    range: RangeInclusive<f64>,
) -> Result<(), DriveFileError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(DriveFileError::geometry(format!(
        "{field} = {value}: give {} to {}",
        range.start(),
        range.end()
    )))
}

// What is wrong with input that cannot be imported.

/// Which of the two files an error is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveFile {
    /// The JSON with geometry, mechanics, cache and overheads.
    Geometry,
    /// The table of seek times.
    Seek,
}

/// Input that cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct DriveFileError {
    /// The file with the fault.
    pub file: DriveFile,
    /// The line or field, and what is wrong with it.
    pub problem: String,
}

impl DriveFileError {
    pub(super) fn geometry(problem: impl Into<String>) -> Self {
        Self {
            file: DriveFile::Geometry,
            problem: problem.into(),
        }
    }

    pub(super) fn seek(problem: impl Into<String>) -> Self {
        Self {
            file: DriveFile::Seek,
            problem: problem.into(),
        }
    }
}
