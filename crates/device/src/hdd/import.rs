//! Turns a drive's measured parameters into the text of a profile.
//!
//! The input is the form of the DiskSim validation set as JSON (geometry, mechanics, cache, overheads) and a
//! table of measured seek times. Nothing is fitted: what the files do not say is left at a neutral value.

use std::fmt::Write;

use serde::Deserialize;

/// Input that cannot be imported. The message names the file's part and the line or field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ImportError(String);

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

/// The text of a profile for the drive that `geometry` (JSON) and `seek` (CSV with the columns
/// `distance_cylinders,seek_ms`) describe.
///
/// # Errors
/// JSON of another form; a seek table with a line that is not two numbers. Values are checked when the
/// profile is parsed.
pub fn import(geometry: &str, seek: &str) -> Result<String, ImportError> {
    let drive: Drive = serde_json::from_str(geometry)
        .map_err(|error| ImportError(format!("geometry: {error}")))?;
    let rows = seek_rows(seek)?;
    Ok(render(&drive, &rows))
}

fn seek_rows(seek: &str) -> Result<Vec<(f64, f64)>, ImportError> {
    let row = |(index, line): (usize, &str)| {
        let numbers = line
            .split_once(',')
            .and_then(|(d, t)| Some((d.trim().parse().ok()?, t.trim().parse().ok()?)));
        numbers.ok_or_else(|| {
            ImportError(format!(
                "seek table, line {}: not distance,milliseconds: {line}",
                index + 1
            ))
        })
    };
    seek.lines()
        .enumerate()
        .skip(1)
        .filter(|(_, line)| !line.trim().is_empty())
        .map(row)
        .collect()
}

fn render(drive: &Drive, seek: &[(f64, f64)]) -> String {
    let mut out = String::new();
    let m = &drive.mechanics;
    let write_cache = drive.cache.fast_write_level > 0.0;
    let _ = write!(
        out,
        "kind = \"hdd\"\nsummary = \"{}\"\nwrite_cache = {write_cache}\n\n[mechanics]\nrpm = {}\nsurfaces = {}\n\
         head_switch_us = {}\nwrite_settle_us = {}\n\
         read_settle_us = {}\nserpentine = {}\n\n[seek]\ncurve = \"table\"\ntable_us = [\n",
        drive.drive,
        m.rpm,
        drive.surfaces,
        m.head_switch_ms * 1e3,
        // A negative time to settle comes of a fit elsewhere, not of a head that arrives before it left.
        m.write_settle_ms.max(0.0) * 1e3,
        read_settle_us(seek),
        drive.lbn_mapping_scheme > 0.0,
    );
    for (distance, time_ms) in seek {
        let _ = writeln!(out, "  [{distance}, {:.3}],", time_ms * 1e3);
    }
    out.push_str("]\n");
    render_zones(drive, &mut out);
    render_electronics(drive, &mut out);
    let _ = write!(
        out,
        "\n[source]\nmechanics = {0:?}\nseek = {0:?}\nzones = {0:?}\ncache = {0:?}\noverhead = {0:?}\nbus = {0:?}\n\
         queue = \"estimated: one command at a time, as measured\"\n",
        drive.source
    );
    out
}

fn render_zones(drive: &Drive, out: &mut String) {
    let per_track = spares_are_per_track(drive);
    for zone in &drive.zones {
        let (on_track, in_zone) = if per_track {
            (zone.spare_sectors, 0.0)
        } else {
            (0.0, zone.spare_sectors)
        };
        let _ = write!(
            out,
            "\n[[zones]]\nfirst_cylinder = {}\ncylinders = {}\nsectors_per_track = {}\nspares_per_track = {on_track}\n\
             spares = {in_zone}\nslips = {}\noffset_sectors = {}\ntrack_skew_sectors = {}\ncylinder_skew_sectors = {}\n",
            zone.first_cylinder,
            zone.last_cylinder - zone.first_cylinder + 1.0,
            zone.sectors_per_track,
            zone.slips,
            zone.first_sector_offset,
            zone.track_skew_sectors,
            zone.cylinder_skew_sectors,
        );
    }
}

/// Whether spare counts are for each track: taken so if the drive's capacity then fits and the tracks are long
/// enough for it. They are for each zone otherwise.
fn spares_are_per_track(drive: &Drive) -> bool {
    let sum = |sectors: fn(&Zone) -> f64| -> f64 {
        let tracks =
            |zone: &Zone| (zone.last_cylinder - zone.first_cylinder + 1.0) * drive.surfaces;
        drive
            .zones
            .iter()
            .map(|zone| tracks(zone) * sectors(zone))
            .sum()
    };
    let spare = sum(|zone| zone.spare_sectors);
    spare > 0.0 && sum(|zone| zone.sectors_per_track) - spare >= drive.sectors
}

/// Reading ahead in mode 4 tries to stay a track ahead of sequential reads. With segments that cannot hold a
/// track the drive waits for a second read in sequence, and then gives the stream the whole buffer.
fn needs_sequence(drive: &Drive) -> bool {
    let tracks = drive.zones.iter().map(|zone| zone.sectors_per_track);
    drive.cache.continuous_read == 4.0
        && drive.cache.segment_sectors < tracks.fold(f64::INFINITY, f64::min)
}

/// A drive in mode 4 whose handling of a read miss takes no time keeps what passes from the head's arrival on.
fn reads_on_arrival(drive: &Drive) -> bool {
    let over = &drive.overheads_ms;
    drive.cache.continuous_read == 4.0
        && over.read_miss_after_read + over.read_miss_after_write == 0.0
}

/// A read that misses on the track of the one before still waits until the head is known to be on it: taken as
/// half of a single-cylinder seek, whose other half is moving the arm.
fn read_settle_us(seek: &[(f64, f64)]) -> f64 {
    seek.first().map_or(0.0, |(_, time_ms)| time_ms * 1e3 / 2.0)
}

/// Bus time of a sector in microseconds. 0 means that it was not measured: then that of SCSI-1,
/// 5 MB/s, the rate that every host of the time could do.
fn bus_sector_us(cache: &Cache) -> f64 {
    if cache.bus_ms_per_sector > 0.0 {
        cache.bus_ms_per_sector * 1e3
    } else {
        102.4
    }
}

fn render_electronics(drive: &Drive, out: &mut String) {
    let (cache, over) = (&drive.cache, &drive.overheads_ms);
    let read_miss = (over.read_miss_after_read + over.read_miss_after_write) / 2.0;
    let (if_sequential, on_arrival) = (needs_sequence(drive), reads_on_arrival(drive));
    let segment_sectors = if if_sequential {
        cache.segment_sectors * cache.segments
    } else {
        cache.segment_sectors
    };
    let write_segments = cache.max_write_segments.max(1.0);
    let _ = write!(
        out,
        "\n[cache]\nsegments = {}\nsegment_sectors = {}\nreadahead_sectors = {}\nwrite_sectors = {}\n\
         write_segments = {write_segments}\nreadahead_if_sequential = {if_sequential}\n\
         read_on_arrival = {on_arrival}\n\n[bus]\nsector_us = {}\n\n[queue]\ndepth = 1\npolicy = \"fcfs\"\n\
         age_limit_us = 1e6\n\n[overhead]\n",
        cache.segments,
        segment_sectors,
        cache.readahead_max_sectors,
        cache.segment_sectors * write_segments,
        bus_sector_us(cache),
    );
    for (key, time_ms) in [
        ("read_hit_after_read", over.read_hit_after_read),
        ("read_hit_after_write", over.read_hit_after_write),
        ("read_miss_after_read", read_miss),
        ("read_miss_after_write", read_miss),
        ("write_hit_after_read", over.write_hit_after_read),
        ("write_hit_after_write", over.write_hit_after_write),
        ("write_miss_after_read", over.write_miss_after_read),
        ("write_miss_after_write", over.write_miss_after_write),
        ("read_completion", over.read_completion),
        ("write_completion", over.write_completion),
    ] {
        let _ = writeln!(out, "{key}_us = {}", time_ms * 1e3);
    }
    out.push_str("flush_us = 0\n");
}
