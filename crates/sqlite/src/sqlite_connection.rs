//! A connection, set up as its address says, that reports its counts.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rusqlite::types::Value;
use rusqlite::{Connection, Error, ErrorCode, OpenFlags, ffi};
use serde::Deserialize;
use tierwise_load::{LoadError, StatementFailure};

use crate::counted_file::RequestTotals;
use crate::file_directories::FileDirectories;
use crate::placing_vfs::PlacingVfs;

pub(crate) struct SqliteConnection {
    pub connection: Connection,
    pub vfs: &'static PlacingVfs,
}

impl SqliteConnection {
    /// Connect; the first connection after a crash recovers.
    pub fn open(address: &DatabaseAddress) -> Result<Self, StatementFailure> {
        let vfs = PlacingVfs::of(&address.places);
        Self::connect(address, vfs).map_err(|error| failure_of_sqlite(&error, vfs))
    }

    fn connect(address: &DatabaseAddress, vfs: &'static PlacingVfs) -> rusqlite::Result<Self> {
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

// The address of a database for its connections.

/// Where a database is, and how each connection to it is set up.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseAddress {
    /// Where its files are.
    pub places: FileDirectories,
    /// Names and values of PRAGMAs, executed in this order by each connection.
    pub pragmas: Vec<(String, String)>,
}

impl DatabaseAddress {
    /// Read it from JSON.
    ///
    /// # Errors
    /// If the text is no address, a directory is not there, or a PRAGMA is more than a word or a number.
    pub fn parse(json: &str) -> Result<Self, LoadError> {
        let mut address: Self =
            serde_json::from_str(json).map_err(|error| LoadError::Address(error.to_string()))?;
        let is_word = |text: &str| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            !text.is_empty() && text.chars().all(is_part)
        };
        if let Some((name, value)) = address
            .pragmas
            .iter()
            .find(|(n, v)| !is_word(n) || !is_word(v))
        {
            return Err(LoadError::Address(format!(
                "PRAGMA {name} = {value} is no word or number"
            )));
        }
        let canonical = address.places.canonical();
        address.places = canonical.map_err(|error| LoadError::Address(error.to_string()))?;
        Ok(address)
    }
}

// Statements that are stopped when their time is over.

/// Instructions of SQLite's machine between two looks at the clock: far less than a millisecond.
const LOOK_INSTRUCTIONS: i32 = 1000;

/// The time that each statement of one connection has, if there is a limit.
pub(crate) struct StatementTimeLimit {
    cap: Option<Duration>,
    started: Instant,
    /// When the statement under way must end, since `started`.
    ends_ns: Arc<AtomicU64>,
}

impl StatementTimeLimit {
    pub fn none() -> Self {
        Self {
            cap: None,
            started: Instant::now(),
            ends_ns: Arc::default(),
        }
    }

    /// Change the limit of the statements to come.
    pub fn set(
        &mut self,
        cap: Option<Duration>,
        connection: &mut Connection,
    ) -> rusqlite::Result<()> {
        let was_set = self.cap.is_some();
        self.cap = cap;
        match cap {
            Some(_) if !was_set => {
                let (started, ends_ns) = (self.started, Arc::clone(&self.ends_ns));
                let is_over =
                    move || started.elapsed().as_nanos() as u64 > ends_ns.load(Ordering::Relaxed);
                connection.progress_handler(LOOK_INSTRUCTIONS, Some(is_over))
            }
            None if was_set => connection.progress_handler(0, None::<fn() -> bool>),
            _ => Ok(()),
        }
    }

    /// A statement begins.
    pub fn begin(&self) {
        if let Some(cap) = self.cap {
            let end = self.started.elapsed() + cap;
            self.ends_ns.store(end.as_nanos() as u64, Ordering::Relaxed);
        }
    }
}

// SQLite's errors in the form that clients report.

/// The failure of a statement; where a device refused, including the request that it refused.
pub(crate) fn failure_of_sqlite(error: &Error, vfs: &PlacingVfs) -> StatementFailure {
    let message = sqlite_message(error);
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StatementFailure {
            retry: true,
            ..StatementFailure::new(message)
        },
        Some(ErrorCode::OperationInterrupted) => StatementFailure::capped(message),
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => {
            let refused = vfs.failure().map(|refused| format!(" ({refused})"));
            StatementFailure::new(message + &refused.unwrap_or_default())
        }
        _ => StatementFailure::new(message),
    }
}

/// In SQLite's words, without the statement, which callers name themselves.
fn sqlite_message(error: &Error) -> String {
    match error {
        Error::SqliteFailure(_, Some(message)) | Error::SqlInputError { msg: message, .. } => {
            message.clone()
        }
        other => other.to_string(),
    }
}

// The connection that keeps a database open, makes its tables and reads its counters.

/// A database that is open: while it is, its log outlives the clients.
pub struct OpenDatabase {
    open: Mutex<Option<SqliteConnection>>,
    vfs: &'static PlacingVfs,
}

impl OpenDatabase {
    /// Make the database, or open it and recover if it was not closed.
    ///
    /// # Errors
    /// If a device refuses, or the files are no database.
    pub fn open(address: &DatabaseAddress) -> Result<Self, StatementFailure> {
        let session = SqliteConnection::open(address)?;
        let vfs = session.vfs;
        // Only a statement that reads looks for something to recover.
        let looked = session.rows("SELECT count(*) FROM sqlite_schema");
        looked.map_err(|error| failure_of_sqlite(&error, vfs))?;
        // A new journal makes SQLite flush the directory, which here is not that of the database file.
        let flushed = File::open(&address.places.data).and_then(|directory| directory.sync_all());
        flushed.map_err(|error| {
            StatementFailure::new(format!("flush of data's directory: {error}"))
        })?;
        Ok(Self {
            open: Mutex::new(Some(session)),
            vfs,
        })
    }

    /// Run one statement and give its rows, empty for one that returns none.
    ///
    /// # Errors
    /// If the database is closed or SQLite refuses.
    pub fn query(&self, sql: &str) -> Result<Vec<Vec<Value>>, StatementFailure> {
        let mut open = self.locked();
        let session = open
            .as_mut()
            .ok_or_else(|| StatementFailure::new("the database is closed"))?;
        let rows = session.rows(sql);
        session.hand_in();
        rows.map_err(|error| failure_of_sqlite(&error, self.vfs))
    }

    /// Write all of the write-ahead log into the database file; later records begin at the log's start.
    ///
    /// The log's file keeps its size, as it does at SQLite's own checkpoints: overwriting it costs a flush
    /// less than growing it.
    ///
    /// # Errors
    /// If a client prevents it for as long as the busy timeout allows, or a device refuses.
    pub fn checkpoint(&self) -> Result<(), StatementFailure> {
        let rows = self.query("PRAGMA wal_checkpoint(RESTART)")?;
        match rows.first().and_then(|row| row.first()) {
            Some(Value::Integer(0)) => Ok(()),
            _ => Err(StatementFailure::new(
                "a transaction of a client is in the way of the checkpoint",
            )),
        }
    }

    /// Totals of all connections of this process.
    pub fn counts(&self) -> &'static RequestTotals {
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

    fn locked(&self) -> MutexGuard<'_, Option<SqliteConnection>> {
        self.open.lock().expect("no panic under the lock")
    }
}
