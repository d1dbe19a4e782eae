//! RAID levels.

/// How data lies on the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Striped, without redundancy.
    Raid0,
    /// The same on every member.
    Raid1,
    /// Striped over pairs of members that hold the same.
    Raid10,
    /// Striped with one rotating chunk of parity a row.
    Raid5,
}

impl Level {
    /// Fewest members that such an array can have.
    pub(super) fn least_members(self) -> u32 {
        match self {
            Self::Raid0 | Self::Raid1 => 2,
            Self::Raid5 => 3,
            Self::Raid10 => 4,
        }
    }
}
