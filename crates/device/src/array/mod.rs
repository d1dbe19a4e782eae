//! Several devices as one: RAID 0, 1, 10 and 5, optionally behind a controller with a write cache.
//!
//! Models: striping, mirroring and rotating parity over members of any kind, which are models of their own and
//! serve their shares at the same time; rotationally coupled members; small writes with parity by
//! read-modify-write or reconstruct-write, full stripes without reads; the choice of a copy to read; a
//! controller's command time, host link and write-back cache with a limit on what may be dirty; flush; one failed
//! member.
//! Layouts and small writes after Patterson, Gibson and Katz (SIGMOD 1988), Lee and Katz (ASPLOS 1991) and Chen et
//! al. (ACM Computing Surveys 26(2), 1994).
//! Does not model: a controller's read cache and read-ahead (members have their own); its limit of commands a
//! second; the time of exclusive or; locks on stripes; logs against the write hole; scrubbing; a second
//! failure; rebuilding.

mod controller_cache;
mod disk_array;
mod members;
mod parity;
mod raid_layout;
mod write_back;

use std::ops::RangeInclusive;

use raid_layout::RaidLayout;

use crate::params_error::{CAPACITY_BYTES, ParamsError, SectionResult, TIME_NS, require_in_range};
use crate::profile_section::ProfileSection;
use crate::{Device, Nanos};
pub use disk_array::DiskArray;
pub use raid_layout::RaidLevel;

// Parameters of the array and how a profile gives them.

const MEMBERS: RangeInclusive<u32> = 2..=1024;
const STRIPE_SECTORS: RangeInclusive<u64> = 1..=1 << 21;

/// Parameters of [`self::DiskArray`].
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayParams<M> {
    /// What the members are.
    pub member: Box<M>,
    /// How many there are.
    pub members: u32,
    /// How data lies on them.
    pub level: RaidLevel,
    /// Consecutive sectors on one member; a mirror has no such unit.
    pub stripe_sectors: u64,
    /// Whether the members' platters stand alike at any time.
    pub coupled: bool,
    /// Whether one member has failed.
    pub degraded: bool,
    /// The controller between host and members; none by default.
    pub controller: ControllerParams,
}

/// A controller with a write-back cache.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ControllerParams {
    /// Command handling.
    pub overhead_ns: Nanos,
    /// Time the link to the host takes for a sector; 0 for a link without limit.
    pub sector_ns: f64,
    /// Sectors that may be dirty; 0 for no write cache.
    pub dirty_sectors: u64,
    /// Whether dirty data survives a loss of power.
    pub protected: bool,
}

impl<M: ArrayMember> ArrayParams<M> {
    pub(crate) fn parse(root: &mut ProfileSection<'_>, member: M) -> SectionResult<Self> {
        let level = match root.word("level", &["raid0", "raid1", "raid10", "raid5"])? {
            "raid0" => RaidLevel::Raid0,
            "raid1" => RaidLevel::Raid1,
            "raid10" => RaidLevel::Raid10,
            _ => RaidLevel::Raid5,
        };
        let params = Self {
            members: root.integer("members", MEMBERS)?,
            level,
            stripe_sectors: match level {
                RaidLevel::Raid1 => 1,
                _ => root.kib("stripe_kib", STRIPE_SECTORS)?,
            },
            coupled: root.flag("coupled")?,
            degraded: root.integer_or("failed_members", 0, 0..=1_u32)? == 1,
            controller: read_controller(root)?,
            member: Box::new(member),
        };
        params.check()?;
        Ok(params)
    }

    fn check(&self) -> SectionResult<()> {
        require_in_range(
            "members",
            self.members,
            self.level.least_members()..=*MEMBERS.end(),
        )?;
        require_mirror_pairs(self.level, self.members)?;
        require_in_range(
            "member.capacity_bytes",
            self.member.capacity_bytes(),
            CAPACITY_BYTES,
        )?;
        if self.stripe_sectors * 512 > self.member.capacity_bytes() {
            return Err(ParamsError::new(
                "stripe_kib is larger than a member",
                "give a smaller stripe_kib",
            ));
        }
        if self.degraded && self.level == RaidLevel::Raid0 {
            return Err(ParamsError::new(
                "failed_members = 1 with level = \"raid0\", which survives no failure",
                "give failed_members = 0, or another level",
            ));
        }
        if self.controller.protected && self.controller.dirty_sectors == 0 {
            return Err(ParamsError::new(
                "controller.protected = true protects nothing: no cache or no share of it for writes",
                "give cache_mib and write_share above 0, or protected = false",
            ));
        }
        if self.controller.protected && self.member.write_cache() {
            return Err(ParamsError::new(
                "controller.protected = true with members that may lose what they report as written",
                "give member_write_cache = false (disks), or another member",
            ));
        }
        Ok(())
    }

    /// Sectors of the whole.
    pub fn capacity_sectors(&self) -> u64 {
        self.layout().capacity()
    }

    fn layout(&self) -> RaidLayout {
        let member_sectors = self.member.capacity_bytes() / 512;
        RaidLayout::new(
            self.level,
            u64::from(self.members),
            self.stripe_sectors,
            member_sectors,
        )
    }

    /// Whether completed writes may be lost with the power until a flush.
    pub fn write_cache(&self) -> bool {
        let controller = self.controller.dirty_sectors > 0 && !self.controller.protected;
        controller || self.member.write_cache()
    }
}

fn require_mirror_pairs(level: RaidLevel, members: u32) -> SectionResult<()> {
    if level == RaidLevel::Raid10 && !members.is_multiple_of(2) {
        return Err(ParamsError::new(
            format!("members = {members} cannot be paired"),
            "give an even number for raid10",
        ));
    }
    Ok(())
}

fn read_controller(root: &mut ProfileSection<'_>) -> SectionResult<ControllerParams> {
    if !root.has("controller") {
        return Ok(ControllerParams::default());
    }
    let mut section = root.section("controller")?;
    let cache_sectors = section.number("cache_mib", 0.0..=1e6)? * 2048.0;
    let params = ControllerParams {
        overhead_ns: section.micros("overhead_us", TIME_NS)?,
        sector_ns: section.link_ns("bus_mb_per_s")?,
        dirty_sectors: (cache_sectors * section.number("write_share", 0.0..=1.0)?) as u64,
        protected: section.flag("protected")?,
    };
    section.finish()?;
    Ok(params)
}

// What an array needs to know of its members.

/// A kind of device that can be a member of an array. [`crate::Profile`] is one.
pub trait ArrayMember {
    /// The addressable size, in bytes.
    fn capacity_bytes(&self) -> u64;

    /// Whether completed writes may be lost with the power until a flush.
    fn write_cache(&self) -> bool;

    /// Whether positions are reached by moving and turning, so that near is fast.
    fn is_rotating(&self) -> bool;

    /// One such device. The same seed gives the same times.
    fn build(&self, seed: u64) -> Box<dyn Device>;
}
