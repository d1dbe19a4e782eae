//! A connection, set up as its address says, that reports its counts.

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, ffi};
use tierwise_load::Failure;

use crate::address::Address;
use crate::failure::failure;
use crate::vfs::Vfs;

pub(crate) struct Session {
    pub connection: Connection,
    pub vfs: &'static Vfs,
}

impl Session {
    /// Connect; the first connection after a crash recovers.
    pub fn open(address: &Address) -> Result<Self, Failure> {
        let vfs = Vfs::of(&address.places);
        Self::connect(address, vfs).map_err(|error| failure(&error, vfs))
    }

    fn connect(address: &Address, vfs: &'static Vfs) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection =
            Connection::open_with_flags_and_vfs(address.places.database(), flags, vfs.name())?;
        for (name, value) in &address.pragmas {
            connection.execute_batch(&format!("PRAGMA {name} = {value}"))?;
        }
        connection.commit_hook(Some(|| {
            vfs.counts.commits.add(1);
            false
        }))?;
        Ok(Self { connection, vfs })
    }

    /// Add the counts of the connection's cache since the last time to the totals.
    pub fn hand_in(&self) {
        let counts = &self.vfs.counts;
        counts
            .cache_hits
            .add(self.take_status(ffi::SQLITE_DBSTATUS_CACHE_HIT));
        counts
            .cache_misses
            .add(self.take_status(ffi::SQLITE_DBSTATUS_CACHE_MISS));
    }

    /// Results of one statement, all rows of it.
    pub fn rows(&self, sql: &str) -> rusqlite::Result<Vec<Vec<Value>>> {
        let mut statement = self.connection.prepare(sql)?;
        let columns = statement.column_count();
        let rows = statement
            .raw_query()
            .mapped(|row| (0..columns).map(|column| row.get(column)).collect());
        rows.collect()
    }

    fn take_status(&self, counter: i32) -> u64 {
        let (mut now, mut highest) = (0, 0);
        // SAFETY: the connection is open, and no other thread uses it during this call.
        unsafe {
            let handle = self.connection.handle();
            ffi::sqlite3_db_status(handle, counter, &mut now, &mut highest, 1);
        }
        now as u64
    }
}
