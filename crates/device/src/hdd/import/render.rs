//! The profile's text.

use std::fmt::Write;

use super::drive::{Drive, Zone};
use super::rules::{self, SpareUnit};

/// The whole profile, with `seek` as pairs of distance in cylinders and time in milliseconds.
pub(super) fn profile(drive: &Drive, seek: &[(f64, f64)]) -> String {
    let mut out = String::new();
    mechanics(drive, seek, &mut out);
    zones(drive, &mut out);
    cache(drive, &mut out);
    overheads(drive, &mut out);
    sources(drive, &mut out);
    out
}

fn mechanics(drive: &Drive, seek: &[(f64, f64)], out: &mut String) {
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
        rules::read_settle_ms(seek) * 1e3,
        drive.lbn_mapping_scheme > 0.0,
    );
    for (distance, time_ms) in seek {
        let _ = writeln!(out, "  [{distance}, {:.3}],", time_ms * 1e3);
    }
    out.push_str("]\n");
}

fn zones(drive: &Drive, out: &mut String) {
    let (unit, beyond) = rules::spare_unit(drive);
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
            within_turn(zone.first_sector_offset, zone),
            within_turn(zone.track_skew_sectors, zone),
            within_turn(zone.cylinder_skew_sectors, zone),
        );
    }
}

fn within_turn(sectors: f64, zone: &Zone) -> f64 {
    sectors.rem_euclid(zone.sectors_per_track)
}

fn spares(zone: &Zone, unit: SpareUnit) -> String {
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

fn cache(drive: &Drive, out: &mut String) {
    let cache = &drive.cache;
    let if_sequential = rules::needs_sequence(drive);
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
        rules::readahead_sectors(cache),
        rules::readahead_to(cache),
        rules::reads_on_arrival(drive),
        cache.segment_sectors * write_segments,
        rules::bus_sector_ms(cache) * 1e3,
    );
}

fn overheads(drive: &Drive, out: &mut String) {
    let over = &drive.overheads_ms;
    let write_miss = rules::write_miss_ms(over);
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

fn sources(drive: &Drive, out: &mut String) {
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
