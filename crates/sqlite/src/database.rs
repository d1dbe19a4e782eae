//! The connection that keeps a database open, makes its tables and reads its counters.

use std::fs::File;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rusqlite::types::Value;
use tierwise_load::Failure;

use crate::file::Counts;
use crate::session::{Address, Session, StatementCap, failure};
use crate::vfs::Vfs;

/// A database that is open: while it is, its log outlives the clients.
pub struct Database {
    open: Mutex<Option<(Session, StatementCap)>>,
    vfs: &'static Vfs,
}

impl Database {
    /// Make the database, or open it and recover if it was not closed.
    ///
    /// # Errors
    /// If a device refuses, or the files are no database.
    pub fn open(address: &Address) -> Result<Self, Failure> {
        let session = Session::open(address)?;
        let vfs = session.vfs;
        // Only a statement that reads looks for something to recover.
        let looked = session.rows("SELECT count(*) FROM sqlite_schema");
        looked.map_err(|error| failure(&error, vfs))?;
        // A new journal makes SQLite flush the directory, which here is not that of the database file.
        let flushed = File::open(&address.places.data).and_then(|directory| directory.sync_all());
        flushed.map_err(|error| Failure::new(format!("flush of data's directory: {error}")))?;
        Ok(Self {
            open: Mutex::new(Some((session, StatementCap::none()))),
            vfs,
        })
    }

    /// Run one statement and give its rows, empty for one that returns none.
    ///
    /// # Errors
    /// If the database is closed or SQLite refuses.
    pub fn query(&self, sql: &str) -> Result<Vec<Vec<Value>>, Failure> {
        self.query_within(sql, None)
    }

    /// As [`Database::query`], but stopped, and failed as `capped`, if it takes longer than this.
    ///
    /// # Errors
    /// If the time is over, the database is closed or SQLite refuses.
    pub fn query_within(
        &self,
        sql: &str,
        cap: Option<Duration>,
    ) -> Result<Vec<Vec<Value>>, Failure> {
        let mut open = self.locked();
        let (session, limit) = open
            .as_mut()
            .ok_or_else(|| Failure::new("the database is closed"))?;
        let rows = limit.set(cap, &mut session.connection).and_then(|()| {
            limit.begin();
            session.rows(sql)
        });
        session.hand_in();
        rows.map_err(|error| failure(&error, self.vfs))
    }

    /// Write all of the write-ahead log into the database file; later records begin at the log's start.
    ///
    /// The log's file keeps its size, as it does at SQLite's own checkpoints: overwriting it costs a flush
    /// less than growing it.
    ///
    /// # Errors
    /// If a client prevents it for as long as the busy timeout allows, or a device refuses.
    pub fn checkpoint(&self) -> Result<(), Failure> {
        let told = self.query("PRAGMA wal_checkpoint(RESTART)")?;
        match told.first().and_then(|row| row.first()) {
            Some(Value::Integer(0)) => Ok(()),
            _ => Err(Failure::new(
                "a transaction of a client is in the way of the checkpoint",
            )),
        }
    }

    /// Totals of all connections of this process.
    pub fn counts(&self) -> &'static Counts {
        &self.vfs.counts
    }

    /// The last request that the operating system refused, if any.
    pub fn refused(&self) -> Option<String> {
        self.vfs.failure()
    }

    /// Close; the last connection to do so empties the write-ahead log.
    pub fn close(&self) {
        self.locked().take();
    }

    fn locked(&self) -> MutexGuard<'_, Option<(Session, StatementCap)>> {
        self.open.lock().expect("no panic under the lock")
    }
}
