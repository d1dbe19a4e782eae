//! Roles of files; the same words as everywhere.

use serde::{Deserialize, Serialize};

/// Role of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Write-ahead log, redo log, logical log.
    Log,
    /// Physical log, rollback journal.
    Doublewrite,
    /// Tables.
    Data,
    /// Indexes.
    Index,
    /// Undo or rollback segments.
    Undo,
    /// Sorts, hash joins and temporary tables that spill.
    Temp,
    /// Catalogue, control files and files without a role of their own.
    System,
    /// Archived log, binary log.
    Archive,
    /// Tables and indexes that a question places apart from the others. No recording has it, and no rule gives it.
    Selected,
}

impl Role {
    /// Every role, in the order of reports.
    pub const ALL: [Self; 9] = [
        Self::Log,
        Self::Doublewrite,
        Self::Data,
        Self::Index,
        Self::Undo,
        Self::Temp,
        Self::System,
        Self::Archive,
        Self::Selected,
    ];

    /// The roles that a file of a recording may have.
    pub fn all_of_files() -> impl Iterator<Item = Self> {
        let all = Self::ALL.into_iter();
        all.filter(|role| *role != Self::Selected)
    }

    /// The one of them with this name.
    #[must_use]
    pub fn of_files(name: &str) -> Option<Self> {
        Self::all_of_files().find(|role| role.name() == name)
    }

    /// Its name, as in placements.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Doublewrite => "doublewrite",
            Self::Data => "data",
            Self::Index => "index",
            Self::Undo => "undo",
            Self::Temp => "temp",
            Self::System => "system",
            Self::Archive => "archive",
            Self::Selected => "selected",
        }
    }
}
