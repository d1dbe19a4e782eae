//! Turns a drive's measured parameters into the text of a profile.
//!
//! The input is the form of the DiskSim validation set as JSON (geometry, mechanics, cache, overheads) and a
//! table of measured seek times. Nothing is fitted to measured requests: the rules in this file, which are
//! the same for every drive, decide whatever the files leave open.

mod geometry_file;

use std::fmt::Write;

use geometry_file::{GeometryFile, GeometryFileZone};

use crate::hdd::drive_files::geometry_file::{GeometryFileCache, GeometryFileOverheads};
pub use geometry_file::{DriveFile, DriveFileError};

/// The text of a profile for the drive that `geometry` (JSON) and `seek` (CSV with the columns
/// `distance_cylinders,seek_ms`) describe.
///
/// # Errors
/// JSON of another form, a field out of range; a seek table that is empty, has a line that is not two numbers, or
/// distances that do not ascend.
pub fn profile_from_drive_files(geometry: &str, seek: &str) -> Result<String, DriveFileError> {
    let drive = GeometryFile::parse(geometry)?;
    let rows = seek_rows(seek)?;
    Ok(profile_table(&drive, &rows))
}

const SEEK_COLUMNS: [&str; 2] = ["distance_cylinders", "seek_ms"];

/// Pairs of distance in cylinders and time in milliseconds.
fn seek_rows(seek: &str) -> Result<Vec<(f64, f64)>, DriveFileError> {
    let names = seek.lines().next().unwrap_or_default();
    let names = names.trim_start_matches('\u{feff}'); // as some spreadsheets begin a file
    if !names.is_empty() && !names.split(',').map(str::trim).eq(SEEK_COLUMNS) {
        let expected = SEEK_COLUMNS.join(",");
        return Err(DriveFileError::seek(format!(
            "line 1: not `{expected}`: {names}"
        )));
    }
    let mut rows: Vec<(f64, f64)> = Vec::new();
    for (index, line) in seek.lines().enumerate().skip(1) {
        if line.trim().is_empty() {
            continue;
        }
        let fault =
            |what: &str| DriveFileError::seek(format!("line {}: {what}: {line}", index + 1));
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
        return Err(DriveFileError::seek("line 2: no seek time in the table"));
    }
    Ok(rows)
}

fn seek_row(line: &str) -> Option<(f64, f64)> {
    let (distance, time) = line.split_once(',')?;
    Some((distance.trim().parse().ok()?, time.trim().parse().ok()?))
}

// The profile's text.

/// The whole profile, with `seek` as pairs of distance in cylinders and time in milliseconds.
fn profile_table(drive: &GeometryFile, seek: &[(f64, f64)]) -> String {
    let mut out = String::new();
    mechanics_table(drive, seek, &mut out);
    zone_tables(drive, &mut out);
    cache_table(drive, &mut out);
    overhead_table(drive, &mut out);
    source_table(drive, &mut out);
    out
}

fn mechanics_table(drive: &GeometryFile, seek: &[(f64, f64)], out: &mut String) {
    let m = &drive.mechanics;
    let _ = write!(
        out,
        "kind = \"hdd\"\nsummary = {:?}\nwrite_cache = {}\n\n[mechanics]\nrpm = {}\nsurfaces = {}\n\
         head_switch_us = {}\nwrite_settle_us = {}\n\
         read_settle_us = {:.1}\nserpentine = {}\n\n[seek]\ncurve = \"table\"\ntable_us = [\n",
        drive.drive,
        drive.cache.fast_write_level > 0.0,
        m.rpm,
        drive.surfaces,
        m.head_switch_ms.max(0.0) * 1e3,
        // A fit elsewhere can make the settling time negative; the head does not arrive before it left.
        m.write_settle_ms.max(0.0) * 1e3,
        read_settle_ms(seek) * 1e3,
        drive.lbn_mapping_scheme > 0.0,
    );
    for (distance, time_ms) in seek {
        let _ = writeln!(out, "  [{distance}, {:.3}],", time_ms * 1e3);
    }
    out.push_str("]\n");
}

fn zone_tables(drive: &GeometryFile, out: &mut String) {
    let (unit, beyond) = spare_unit(drive);
    for (index, zone) in drive.zones.iter().enumerate() {
        let _ = write!(
            out,
            "\n[[zones]]\nfirst_cylinder = {}\ncylinders = {}\nsectors_per_track = {}\n{}reserved_sectors = {}\n\
             offset_sectors = {}\ntrack_skew_sectors = {}\ncylinder_skew_sectors = {}\n",
            zone.first_cylinder,
            zone.last_cylinder - zone.first_cylinder + 1.0,
            zone.sectors_per_track,
            spares(zone, unit),
            if index == 0 { beyond } else { 0.0 },
            angle_within_turn(zone.first_sector_offset, zone),
            angle_within_turn(zone.track_skew_sectors, zone),
            angle_within_turn(zone.cylinder_skew_sectors, zone),
        );
    }
}

fn angle_within_turn(sectors: f64, zone: &GeometryFileZone) -> f64 {
    sectors.rem_euclid(zone.sectors_per_track)
}

fn spares(zone: &GeometryFileZone, unit: SpareUnit) -> String {
    let (count, slips) = (zone.spare_sectors, zone.slips);
    match unit {
        SpareUnit::SectorsOfZone => format!("spares = {count}\nslips = {slips}\n"),
        SpareUnit::SectorsOfCylinder => format!("spares_per_cylinder = {count}\nslips = {slips}\n"),
        SpareUnit::SectorsOfTrack => format!("spares_per_track = {count}\nslips = {slips}\n"),
        SpareUnit::TracksOfZone => {
            format!(
                "spare_tracks = {count}\nslipped_tracks = {}\n",
                slips.min(count)
            )
        }
    }
}

fn cache_table(drive: &GeometryFile, out: &mut String) {
    let cache = &drive.cache;
    let if_sequential = readahead_needs_sequence(drive);
    let segment_sectors = if if_sequential {
        cache.segment_sectors * cache.segments
    } else {
        cache.segment_sectors
    };
    let write_segments = cache.max_write_segments.max(1.0);
    let _ = write!(
        out,
        "\n[cache]\nsegments = {}\nsegment_sectors = {segment_sectors}\nreadahead_sectors = {}\n\
         readahead_to = \"{}\"\nreadahead_if_sequential = {if_sequential}\nread_on_arrival = {}\n\
         write_sectors = {}\nwrite_segments = {write_segments}\n\n[bus]\nsector_us = {:.1}\n\n[queue]\ndepth = 1\n\
         policy = \"fcfs\"\nage_limit_us = 1e6\n",
        cache.segments,
        readahead_sectors(cache),
        readahead_end(cache),
        reads_on_arrival(drive),
        cache.segment_sectors * write_segments,
        bus_sector_ms(cache) * 1e3,
    );
}

fn overhead_table(drive: &GeometryFile, out: &mut String) {
    let over = &drive.overheads_ms;
    let write_miss = write_miss_ms(over);
    out.push_str("\n[overhead]\n");
    for (key, time_ms) in [
        ("read_hit_after_read", over.read_hit_after_read),
        ("read_hit_after_write", over.read_hit_after_write),
        ("read_miss_after_read", over.read_miss_after_read),
        ("read_miss_after_write", over.read_miss_after_write),
        ("write_hit_after_read", over.write_hit_after_read),
        ("write_hit_after_write", over.write_hit_after_write),
        ("write_miss_after_read", write_miss),
        ("write_miss_after_write", write_miss),
        ("read_completion", over.read_completion),
        ("write_completion", over.write_completion),
    ] {
        let _ = writeln!(out, "{key}_us = {:.1}", time_ms.max(0.0) * 1e3);
    }
    out.push_str("flush_us = 0\n");
}

fn source_table(drive: &GeometryFile, out: &mut String) {
    let source = format!("imported from the drive's files: {}", drive.source);
    out.push_str("\n[source]\n");
    for table in ["mechanics", "seek", "zones", "cache", "overhead"] {
        let _ = writeln!(out, "{table} = {source:?}");
    }
    let bus = if drive.cache.bus_ms_per_sector > 0.0 {
        source
    } else {
        "estimated: not in the drive's files; SCSI-1 at 5 MB/s".to_owned()
    };
    let _ = write!(
        out,
        "bus = {bus:?}\nqueue = \"estimated: one command at a time, as measured\"\n\
         \"mechanics.read_settle_us\" = \"estimated: constant of a + b·√d over the shortest seeks\"\n"
    );
}

// Rules for parameters that the files leave open. Every rule rests on the files and on their known meaning;
// docs/evidence/models.md says for each what it was tested against.

/// What a zone's spare count counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpareUnit {
    SectorsOfZone,
    SectorsOfCylinder,
    SectorsOfTrack,
    TracksOfZone,
}

/// The unit with which the zones hold at least the drive's stated sectors, with the smallest surplus, and
/// that surplus. The surplus lies before the first sector, where drives keep their own data.
fn spare_unit(drive: &GeometryFile) -> (SpareUnit, f64) {
    use SpareUnit::{SectorsOfCylinder, SectorsOfTrack, SectorsOfZone, TracksOfZone};
    let mut best = (SectorsOfZone, f64::INFINITY);
    for unit in [
        SectorsOfZone,
        SectorsOfCylinder,
        SectorsOfTrack,
        TracksOfZone,
    ] {
        let held: f64 = drive
            .zones
            .iter()
            .map(|zone| data_sectors(drive, zone, unit))
            .sum();
        let beyond = held - drive.sectors;
        if (0.0..best.1).contains(&beyond) {
            best = (unit, beyond);
        }
    }
    let first = data_sectors(drive, &drive.zones[0], best.0);
    (best.0, if best.1 < first { best.1 } else { 0.0 })
}

fn data_sectors(drive: &GeometryFile, zone: &GeometryFileZone, unit: SpareUnit) -> f64 {
    let cylinders = zone.last_cylinder - zone.first_cylinder + 1.0;
    let tracks = cylinders * drive.surfaces;
    let spares = match unit {
        SpareUnit::SectorsOfZone => zone.spare_sectors + zone.slips,
        SpareUnit::SectorsOfCylinder => zone.spare_sectors * cylinders + zone.slips,
        SpareUnit::SectorsOfTrack => zone.spare_sectors * tracks + zone.slips,
        SpareUnit::TracksOfZone => zone.spare_sectors * zone.sectors_per_track,
    };
    tracks * zone.sectors_per_track - spares
}

/// What ends reading ahead in modes 1 and 2 of DiskSim's manual; in the others the segment does.
fn readahead_end(cache: &GeometryFileCache) -> &'static str {
    if cache.continuous_read == 1.0 {
        "track"
    } else if cache.continuous_read == 2.0 {
        "cylinder"
    } else {
        "segment"
    }
}

/// Mode 0 does not read ahead; in the others a largest length of 0 means the segment's, as in DiskSim.
fn readahead_sectors(cache: &GeometryFileCache) -> f64 {
    if cache.continuous_read == 0.0 {
        0.0
    } else if cache.readahead_max_sectors == 0.0 {
        cache.segment_sectors
    } else {
        cache.readahead_max_sectors
    }
}

/// Reading ahead in mode 4 tries to stay a track ahead of sequential reads. With segments that cannot hold a
/// track the drive waits for a second read in sequence, and then gives the stream the whole buffer.
fn readahead_needs_sequence(drive: &GeometryFile) -> bool {
    let tracks = drive.zones.iter().map(|zone| zone.sectors_per_track);
    drive.cache.continuous_read == 4.0
        && drive.cache.segment_sectors < tracks.fold(f64::INFINITY, f64::min)
}

/// A drive in mode 4 that handles a read miss in no time keeps the sectors passed since the head's arrival.
fn reads_on_arrival(drive: &GeometryFile) -> bool {
    let over = &drive.overheads_ms;
    drive.cache.continuous_read == 4.0
        && over.read_miss_after_read + over.read_miss_after_write == 0.0
}

/// Handling of a write to the medium: the longer of the values after a read and after a write. The shorter one is
/// that of commands sent back to back, part of which passes while the one before ends.
fn write_miss_ms(over: &GeometryFileOverheads) -> f64 {
    over.write_miss_after_read.max(over.write_miss_after_write)
}

/// Distances that are short enough for the square root alone.
const SHORT_CYLINDERS: f64 = 10.0;

/// A read that misses without moving the arm still takes the rest of a seek: command handling and settling.
/// That is the constant of Ruemmler and Wilkes's `a + b·√d`, by least squares over the shortest seeks.
fn read_settle_ms(seek: &[(f64, f64)]) -> f64 {
    let short = || seek.iter().filter(|row| row.0 <= SHORT_CYLINDERS);
    let count = short().count() as f64;
    let root = short().map(|row| row.0.sqrt()).sum::<f64>() / count;
    let time = short().map(|row| row.1).sum::<f64>() / count;
    let spread: f64 = short().map(|row| (row.0.sqrt() - root).powi(2)).sum();
    let product: f64 = short()
        .map(|row| (row.0.sqrt() - root) * (row.1 - time))
        .sum();
    if spread > 0.0 {
        (time - product / spread * root).clamp(0.0, seek[0].1)
    } else {
        0.0
    }
}

/// Bus time of a sector. 0 means not measured; the rule then takes SCSI-1, 5 MB/s, the rate that every host
/// of the time could do.
fn bus_sector_ms(cache: &GeometryFileCache) -> f64 {
    if cache.bus_ms_per_sector > 0.0 {
        cache.bus_ms_per_sector
    } else {
        0.1024
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeviceParams, Profile};

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
        let text = profile_from_drive_files(geometry, SEEK).expect("importable files");
        let profile = Profile::parse(&text, "test").expect("a valid profile");
        match profile.params() {
            DeviceParams::Hdd(params) => *params.clone(),
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
        let fault = |geometry: &str, seek: &str| {
            profile_from_drive_files(geometry, seek).expect_err("a fault")
        };
        let sound = geometry(20_000, 0, 0);
        let geometry = fault(&sound.replace("\"rpm\": 6000", "\"rpm\": -1"), SEEK);
        assert_eq!(geometry.file, DriveFile::Geometry);
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
                DriveFile::Seek,
                "line 3: not `distance,milliseconds`: 4;1.5"
            )
        );
        for names in ["seek_ms,distance_cylinders", "1,0.5"] {
            assert_eq!(
                fault(&sound, &format!("{names}\n1,1.0\n4,1.5\n")).problem,
                format!("line 1: not `distance_cylinders,seek_ms`: {names}")
            );
        }
        assert!(profile_from_drive_files(&sound, &format!("\u{feff}{SEEK}")).is_ok());
        let order = fault(&sound, "distance_cylinders,seek_ms\n4,1.0\n1,1.5\n");
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
        assert!(profile_from_drive_files(&sound, &SEEK.replace("ms\n", "ms\n0,0\n")).is_ok());
    }
}
