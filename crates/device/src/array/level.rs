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
