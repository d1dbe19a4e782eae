//! Checks of a disk's parameters.

use super::bounds;
use super::params::{CacheParams, HddParams, OverheadParams, QueueParams};
use super::seek::SeekCurve;
use super::zones::{self, ZoneParams};
use crate::problem::{Problem, SectionResult, require};

impl HddParams {
    /// Checks every field by itself, then those that must fit together.
    pub(super) fn check(&self) -> SectionResult<()> {
        require("rpm", self.rpm, bounds::RPM)?;
        require("surfaces", self.surfaces, bounds::SURFACES)?;
        require("head_switch_ns", self.head_switch_ns, bounds::SETTLE_NS)?;
        let write_settle_us = self.write_settle_ns as f64 / 1e3;
        require("write_settle_us", write_settle_us, bounds::WRITE_SETTLE_US)?;
        require("read_settle_ns", self.read_settle_ns, bounds::SETTLE_NS)?;
        require(
            "bus_sector_us",
            self.bus_sector_ns / 1e3,
            bounds::BUS_SECTOR_US,
        )?;
        self.zones
            .iter()
            .enumerate()
            .try_for_each(|(index, zone)| zone.check(index, self.surfaces))?;
        zones::check_order(&self.zones)?;
        self.seek.check()?;
        self.cache.check()?;
        self.overhead.check()?;
        self.queue.check()?;
        if self.write_cache && self.cache.write_sectors == 0 {
            return Err(Problem::new(
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
        require(&name("sectors_per_track"), turn, bounds::SECTORS_PER_TRACK)?;
        require(
            &name("first_cylinder"),
            self.first_cylinder,
            bounds::FIRST_CYLINDER,
        )?;
        require(&name("cylinders"), self.cylinders, bounds::CYLINDERS)?;
        require(
            &name("spares_per_track"),
            self.spares_per_track,
            0..=turn / 2,
        )?;
        let spares = 0..=cylinder / 2;
        require(
            &name("spares_per_cylinder"),
            self.spares_per_cylinder,
            spares,
        )?;
        let tracks = 0..=self.spare_tracks;
        require(&name("slipped_tracks"), self.slipped_tracks, tracks)?;
        for (field, count) in [
            ("spares", self.spares),
            ("spare_tracks", self.spare_tracks),
            ("reserved_sectors", self.reserved_sectors),
            ("slips", self.slips),
        ] {
            require(&name(field), count, bounds::UNUSED)?;
        }
        for (field, sectors) in [
            ("offset_sectors", self.offset_sectors),
            ("track_skew_sectors", self.track_skew_sectors),
            ("cylinder_skew_sectors", self.cylinder_skew_sectors),
        ] {
            require(&name(field), sectors, 0.0..=f64::from(turn))?;
        }
        self.require_data(&name("spares"), surfaces)
    }
}

impl SeekCurve {
    fn check(&self) -> SectionResult<()> {
        let times: Vec<f64> = match self {
            Self::Table(rows) => {
                for (distance, _) in rows {
                    require("seek distance", *distance, bounds::SEEK_CYLINDERS)?;
                }
                if rows.is_empty() || rows.windows(2).any(|pair| pair[1].0 <= pair[0].0) {
                    return Err(Problem::new(
                        "seek.table_us is empty or not ascending",
                        "give pairs in ascending distance",
                    ));
                }
                rows.iter().map(|row| row.1).collect()
            }
            Self::TwoPiece {
                short_us,
                boundary_cylinders,
                long_us,
            } => {
                require(
                    "seek.boundary_cylinders",
                    *boundary_cylinders,
                    bounds::SEEK_CYLINDERS,
                )?;
                vec![short_us.0, short_us.1, long_us.0, long_us.1]
            }
            Self::LeeKatz {
                single_us,
                average_us,
                full_us,
                cylinders,
            } => {
                let most_us = *bounds::SEEK_US.end();
                require("seek.average_us", *average_us, *single_us..=most_us)?;
                require("seek.full_us", *full_us, *average_us..=most_us)?;
                require("seek cylinders", *cylinders, 1.0..=1e8)?;
                vec![*single_us, *average_us, *full_us]
            }
        };
        times
            .into_iter()
            .try_for_each(|time| require("seek time in microseconds", time, bounds::SEEK_US))
    }
}

impl CacheParams {
    fn check(&self) -> SectionResult<()> {
        require("cache.segments", self.segments, bounds::SEGMENTS)?;
        require(
            "cache.segment_sectors",
            self.segment_sectors,
            bounds::SEGMENT_SECTORS,
        )?;
        require(
            "cache.readahead_sectors",
            self.readahead_sectors,
            bounds::CACHE_SECTORS,
        )?;
        require(
            "cache.write_sectors",
            self.write_sectors,
            bounds::CACHE_SECTORS,
        )?;
        require(
            "cache.write_segments",
            self.write_segments,
            bounds::WRITE_SEGMENTS,
        )
    }
}

impl OverheadParams {
    fn check(&self) -> SectionResult<()> {
        let reads = self.read_ns.iter().flatten();
        let all = reads.chain(self.write_ns.iter().flatten()).chain([
            &self.read_completion_ns,
            &self.write_completion_ns,
            &self.flush_ns,
        ]);
        all.copied()
            .try_for_each(|time| require("overhead in nanoseconds", time, bounds::OVERHEAD_NS))
    }
}

impl QueueParams {
    fn check(&self) -> SectionResult<()> {
        require("queue.depth", self.depth, bounds::QUEUE_DEPTH)?;
        require(
            "queue.age_limit_ns",
            self.age_limit_ns,
            bounds::AGE_LIMIT_NS,
        )
    }
}
