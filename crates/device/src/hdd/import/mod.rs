//! Turns a drive's measured parameters into the text of a profile.
//!
//! The input is the form of the DiskSim validation set as JSON (geometry, mechanics, cache, overheads) and a
//! table of measured seek times. Nothing is fitted to measured requests: the rules in [`render`], which are
//! the same for every drive, decide whatever the files leave open.

mod render;

use std::ops::RangeInclusive;

use serde::Deserialize;

/// The text of a profile for the drive that `geometry` (JSON) and `seek` (CSV with the columns
/// `distance_cylinders,seek_ms`) describe.
///
/// # Errors
/// JSON of another form, a field out of range; a seek table that is empty, has a line that is not two numbers, or
/// distances that do not ascend.
pub fn import(geometry: &str, seek: &str) -> Result<String, ImportError> {
    let drive = Drive::parse(geometry)?;
    let rows = seek_rows(seek)?;
    Ok(render::profile(&drive, &rows))
}

/// Pairs of distance in cylinders and time in milliseconds.
fn seek_rows(seek: &str) -> Result<Vec<(f64, f64)>, ImportError> {
    let mut rows: Vec<(f64, f64)> = Vec::new();
    for (index, line) in seek.lines().enumerate().skip(1) {
        if line.trim().is_empty() {
            continue;
        }
        let fault = |what: &str| ImportError::seek(format!("line {}: {what}: {line}", index + 1));
        let row = seek_row(line).ok_or_else(|| fault("not `distance,milliseconds`"))?;
        if row == (0.0, 0.0) {
            continue;
        }
        if !(1.0..=1e7).contains(&row.0) || !(0.0..=1e3).contains(&row.1) {
            return Err(fault(
                "distance must be 1 to 1e7 cylinders, time 0 to 1000 ms",
            ));
        }
        if rows.last().is_some_and(|last| row.0 <= last.0) {
            return Err(fault("distances must ascend"));
        }
        rows.push(row);
    }
    if rows.is_empty() {
        return Err(ImportError::seek("line 2: no seek time in the table"));
    }
    Ok(rows)
}

fn seek_row(line: &str) -> Option<(f64, f64)> {
    let (distance, time) = line.split_once(',')?;
    Some((distance.trim().parse().ok()?, time.trim().parse().ok()?))
}

// The fields of the geometry file that the import reads, and their valid ranges.

#[derive(Deserialize)]
struct Drive {
    drive: String,
    source: String,
    surfaces: f64,
    mechanics: Mechanics,
    zones: Vec<Zone>,
    sectors: f64,
    lbn_mapping_scheme: f64,
    cache: Cache,
    overheads_ms: Overheads,
}

#[derive(Deserialize)]
struct Mechanics {
    rpm: f64,
    head_switch_ms: f64,
    write_settle_ms: f64,
}

#[derive(Deserialize)]
struct Zone {
    first_cylinder: f64,
    last_cylinder: f64,
    sectors_per_track: f64,
    first_sector_offset: f64,
    track_skew_sectors: f64,
    cylinder_skew_sectors: f64,
    spare_sectors: f64,
    slips: f64,
}

#[derive(Deserialize)]
struct Cache {
    segments: f64,
    max_write_segments: f64,
    segment_sectors: f64,
    readahead_max_sectors: f64,
    fast_write_level: f64,
    continuous_read: f64,
    bus_ms_per_sector: f64,
}

#[derive(Deserialize)]
struct Overheads {
    #[serde(rename = "Read hit over. after read")]
    read_hit_after_read: f64,
    #[serde(rename = "Read hit over. after write")]
    read_hit_after_write: f64,
    #[serde(rename = "Read miss over. after read")]
    read_miss_after_read: f64,
    #[serde(rename = "Read miss over. after write")]
    read_miss_after_write: f64,
    #[serde(rename = "Write hit over. after read")]
    write_hit_after_read: f64,
    #[serde(rename = "Write hit over. after write")]
    write_hit_after_write: f64,
    #[serde(rename = "Write miss over. after read")]
    write_miss_after_read: f64,
    #[serde(rename = "Write miss over. after write")]
    write_miss_after_write: f64,
    #[serde(rename = "Read completion overhead")]
    read_completion: f64,
    #[serde(rename = "Write completion overhead")]
    write_completion: f64,
}

/// Times in milliseconds that a drive of any age stays below. What others fitted may come out a little below 0.
const TIME_MS: RangeInclusive<f64> = -10.0..=100.0;
/// Angles in sectors, of any turn.
const ANGLE: RangeInclusive<f64> = -1e6..=1e6;

impl Drive {
    fn parse(geometry: &str) -> Result<Self, ImportError> {
        let drive: Self = serde_json::from_str(geometry)
            .map_err(|error| ImportError::geometry(error.to_string()))?;
        drive.check()?;
        Ok(drive)
    }

    fn check(&self) -> Result<(), ImportError> {
        within("surfaces", self.surfaces, 1.0..=64.0)?;
        within("sectors", self.sectors, 1.0..=1e12)?;
        within("mechanics.rpm", self.mechanics.rpm, 1e3..=3e4)?;
        within(
            "mechanics.head_switch_ms",
            self.mechanics.head_switch_ms,
            TIME_MS,
        )?;
        within(
            "mechanics.write_settle_ms",
            self.mechanics.write_settle_ms,
            TIME_MS,
        )?;
        if self.zones.is_empty() {
            return Err(ImportError::geometry("zones: empty, give at least one"));
        }
        for (index, zone) in self.zones.iter().enumerate() {
            zone.check(index)?;
        }
        self.cache.check()?;
        self.overheads_ms.check()
    }
}

impl Zone {
    fn check(&self, index: usize) -> Result<(), ImportError> {
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
            within(&format!("zones[{index}].{field}"), value, range)?;
        }
        Ok(())
    }
}

impl Cache {
    fn check(&self) -> Result<(), ImportError> {
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
            within(&format!("cache.{field}"), value, range)?;
        }
        Ok(())
    }
}

impl Overheads {
    fn check(&self) -> Result<(), ImportError> {
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
            within(&format!("overheads_ms.\"{field}\""), value, TIME_MS)?;
        }
        Ok(())
    }
}

fn within(field: &str, value: f64, range: RangeInclusive<f64>) -> Result<(), ImportError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(ImportError::geometry(format!(
        "{field} = {value}: give {} to {}",
        range.start(),
        range.end()
    )))
}

// What is wrong with input that cannot be imported.

/// Which of the two files an error is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportFile {
    /// The JSON with geometry, mechanics, cache and overheads.
    Geometry,
    /// The table of seek times.
    Seek,
}

/// Input that cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ImportError {
    /// The file with the fault.
    pub file: ImportFile,
    /// The line or field, and what is wrong with it.
    pub problem: String,
}

impl ImportError {
    fn geometry(problem: impl Into<String>) -> Self {
        Self {
            file: ImportFile::Geometry,
            problem: problem.into(),
        }
    }

    fn seek(problem: impl Into<String>) -> Self {
        Self {
            file: ImportFile::Seek,
            problem: problem.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Params, Profile};

    const SEEK: &str = "distance_cylinders,seek_ms\n1,1.0\n4,1.5\n9,2.0\n400,6.0\n";

    /// A drive of one zone: 100 cylinders, 4 surfaces, 50 sectors on a track.
    fn geometry(sectors: u32, spares: u32, slips: u32) -> String {
        format!(
            "{{\"drive\": \"Test\", \"source\": \"made up\", \"surfaces\": 4.0, \"sectors\": {sectors},\n\
         \"mechanics\": {{\"rpm\": 6000, \"head_switch_ms\": 0.5, \"write_settle_ms\": -0.3}},\n\
         \"zones\": [{{\"first_cylinder\": 0, \"last_cylinder\": 99, \"sectors_per_track\": 50,\n\
         \"first_sector_offset\": 0, \"track_skew_sectors\": 7, \"cylinder_skew_sectors\": 9,\n\
         \"spare_sectors\": {spares}, \"slips\": {slips}}}],\n\
         \"lbn_mapping_scheme\": 0, \"cache\": {{\"segments\": 2, \"max_write_segments\": 1, \"segment_sectors\": 64,\n\
         \"readahead_max_sectors\": 32, \"fast_write_level\": 0, \"continuous_read\": 1, \"bus_ms_per_sector\": 0}},\n\
         \"overheads_ms\": {{\"Read hit over. after read\": 1, \"Read hit over. after write\": 1,\n\
         \"Read miss over. after read\": 1, \"Read miss over. after write\": 1, \"Write hit over. after read\": 2,\n\
         \"Write hit over. after write\": 1, \"Write miss over. after read\": 2, \"Write miss over. after write\": 1,\n\
         \"Read completion overhead\": 0, \"Write completion overhead\": 0}}}}"
        )
    }

    fn imported(geometry: &str) -> crate::hdd::HddParams {
        let text = import(geometry, SEEK).expect("importable files");
        let profile = Profile::parse(&text, "test").expect("a valid profile");
        match profile.params() {
            Params::Hdd(params) => *params.clone(),
            _ => panic!("a disk"),
        }
    }

    #[test]
    fn the_stated_capacity_tells_what_spares_count() {
        // 20,000 sectors in all; 3 spares.
        for (stated, unit) in [
            (20_000 - 3, [3, 0, 0, 0]),
            (20_000 - 3 * 50, [0, 0, 0, 3]),
            (20_000 - 3 * 100, [0, 3, 0, 0]),
            (20_000 - 3 * 400, [0, 0, 3, 0]),
        ] {
            let params = imported(&geometry(stated, 3, 0));
            let zone = &params.zones[0];
            let counts = [
                zone.spares,
                zone.spares_per_cylinder,
                u64::from(zone.spares_per_track),
                zone.spare_tracks,
            ];
            assert_eq!(counts, unit, "{stated} sectors stated");
            assert_eq!(params.capacity_sectors(), u64::from(stated));
        }
    }

    #[test]
    fn sectors_beyond_the_stated_ones_lie_before_the_first() {
        let params = imported(&geometry(20_000 - 3 * 50 - 40, 3, 1));
        assert_eq!(
            (
                params.zones[0].reserved_sectors,
                params.zones[0].slipped_tracks
            ),
            (40, 1)
        );
        assert_eq!(params.capacity_sectors(), 20_000 - 3 * 50 - 40);
    }

    #[test]
    fn settling_is_the_constant_of_the_shortest_seeks() {
        // 0.5 + 0.5·√d up to 9 cylinders.
        assert_eq!(imported(&geometry(20_000, 0, 0)).read_settle_ns, 500_000);
    }

    #[test]
    fn faults_name_the_field_or_the_line() {
        let fault = |geometry: &str, seek: &str| import(geometry, seek).expect_err("a fault");
        let sound = geometry(20_000, 0, 0);
        let geometry = fault(&sound.replace("\"rpm\": 6000", "\"rpm\": -1"), SEEK);
        assert_eq!(geometry.file, ImportFile::Geometry);
        assert_eq!(geometry.problem, "mechanics.rpm = -1: give 1000 to 30000");
        let missing = fault(&sound.replace("\"slips\"", "\"slops\""), SEEK);
        assert!(
            missing
                .problem
                .starts_with("missing field `slips` at line 5"),
            "{missing}"
        );
        let seek = fault(&sound, "distance_cylinders,seek_ms\n1,1.0\n4;1.5\n");
        assert_eq!(
            (seek.file, seek.problem.as_str()),
            (
                ImportFile::Seek,
                "line 3: not `distance,milliseconds`: 4;1.5"
            )
        );
        let order = fault(&sound, "d,s\n4,1.0\n1,1.5\n");
        assert_eq!(order.problem, "line 3: distances must ascend: 1,1.5");
        assert_eq!(
            fault(&sound, "").problem,
            "line 2: no seek time in the table"
        );
    }

    #[test]
    fn what_others_fitted_below_nothing_is_nothing_and_angles_are_within_a_turn() {
        let sound = geometry(20_000, 0, 0);
        let odd = sound
            .replace("\"first_sector_offset\": 0", "\"first_sector_offset\": -3")
            .replace("\"track_skew_sectors\": 7", "\"track_skew_sectors\": 57")
            .replace(
                "\"Read completion overhead\": 0",
                "\"Read completion overhead\": -0.1",
            )
            .replace(
                "\"readahead_max_sectors\": 32",
                "\"readahead_max_sectors\": 0",
            );
        let params = imported(&odd);
        let zone = &params.zones[0];
        assert_eq!((zone.offset_sectors, zone.track_skew_sectors), (47.0, 7.0));
        assert_eq!(params.overhead.read_completion_ns, 0);
        assert_eq!(params.cache.readahead_sectors, 64);
        assert!(import(&sound, &SEEK.replace("ms\n", "ms\n0,0\n")).is_ok());
    }
}
