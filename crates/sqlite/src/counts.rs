//! Counters of the files and caches of one database.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// The purpose of a file; requests are counted by it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Data,
    Log,
    Doublewrite,
    Temp,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Log => "log",
            Self::Doublewrite => "doublewrite",
            Self::Temp => "temp",
        }
    }
}

/// Requests to the operating system for the files of one kind.
#[derive(Debug, Default, Serialize)]
pub struct Requests {
    /// Read requests.
    pub reads: Count,
    /// Bytes read.
    pub read_bytes: Count,
    /// Write requests.
    pub writes: Count,
    /// Bytes written.
    pub written_bytes: Count,
    /// Flushes of a file.
    pub syncs: Count,
}

/// Totals since the first connection of this process.
#[derive(Debug, Default, Serialize)]
pub struct Counts {
    /// The database file.
    pub data: Requests,
    /// The write-ahead log.
    pub log: Requests,
    /// The rollback journal.
    pub doublewrite: Requests,
    /// Temporary files.
    pub temp: Requests,
    /// Pages found in the cache of a connection. Handed in at the end of each transaction.
    pub cache_hits: Count,
    /// Pages that a connection did not have in its cache.
    pub cache_misses: Count,
    /// Transactions committed that had written.
    pub commits: Count,
}

impl Counts {
    pub(crate) fn of(&self, kind: Kind) -> &Requests {
        match kind {
            Kind::Data => &self.data,
            Kind::Log => &self.log,
            Kind::Doublewrite => &self.doublewrite,
            Kind::Temp => &self.temp,
        }
    }
}

/// A number that several threads count up.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Count(AtomicU64);

impl Count {
    /// The number now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }
}
