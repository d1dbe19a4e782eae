//! Checks of a disk's parameters.

use super::params::{CacheParams, HddParams, OverheadParams, QueueParams};
use super::seek::SeekCurve;
use super::zones::{self, ZoneParams};
use crate::problem::{Problem, SectionResult, require};
use crate::ram::TIME_NS;

/// Longest seek that may be given, in microseconds.
const MOST_SEEK_US: f64 = 1e6;

impl HddParams {
    /// Checks every field by itself, then those that must fit together.
    pub(super) fn check(&self) -> SectionResult<()> {
        require("rpm", self.rpm, 1000.0..=30_000.0)?;
        require("surfaces", self.surfaces, 1..=64)?;
        require("head_switch_ns", self.head_switch_ns, 0..=50_000_000)?;
        require(
            "write_settle_ns",
            self.write_settle_ns,
            -5_000_000..=50_000_000,
        )?;
        require("read_settle_ns", self.read_settle_ns, 0..=50_000_000)?;
        require("bus_sector_ns", self.bus_sector_ns, 0.0..=1e7)?;
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
        require(&name("sectors_per_track"), turn, 8..=100_000)?;
        require(&name("first_cylinder"), self.first_cylinder, 0..=10_000_000)?;
        require(&name("cylinders"), self.cylinders, 1..=10_000_000)?;
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
            require(&name(field), count, 0..=1 << 40)?;
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
                    require("seek distance", *distance, 1.0..=1e7)?;
                }
                if rows.is_empty() || rows.windows(2).any(|pair| pair[1].0 <= pair[0].0) {
                    return Err(Problem::new(
                        "the seek table is empty or not ascending",
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
                require("seek boundary_cylinders", *boundary_cylinders, 1.0..=1e7)?;
                vec![short_us.0, short_us.1, long_us.0, long_us.1]
            }
            Self::LeeKatz {
                single_us,
                average_us,
                full_us,
                cylinders,
            } => {
                require("seek average_us", *average_us, *single_us..=*full_us)?;
                require("seek cylinders", *cylinders, 1.0..=1e8)?;
                vec![*single_us, *average_us, *full_us]
            }
        };
        times
            .into_iter()
            .try_for_each(|time| require("seek time in microseconds", time, 0.0..=MOST_SEEK_US))
    }
}

impl CacheParams {
    fn check(&self) -> SectionResult<()> {
        require("cache.segments", self.segments, 0..=256)?;
        require("cache.segment_sectors", self.segment_sectors, 1..=1 << 24)?;
        require(
            "cache.readahead_sectors",
            self.readahead_sectors,
            0..=1 << 24,
        )?;
        require("cache.write_sectors", self.write_sectors, 0..=1 << 24)?;
        require("cache.write_segments", self.write_segments, 1..=4096)
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
            .try_for_each(|time| require("overhead in nanoseconds", time, TIME_NS))
    }
}

impl QueueParams {
    fn check(&self) -> SectionResult<()> {
        require("queue.depth", self.depth, 1..=1024)?;
        require(
            "queue.age_limit_ns",
            self.age_limit_ns,
            1..=1_000_000_000_000,
        )
    }
}
