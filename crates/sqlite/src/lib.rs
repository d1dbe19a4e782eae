//! SQLite with each kind of its files in a directory of its own: the VFS that does this, clients, and the one
//! connection that looks after the database.
//!
//! SQLite keeps all its files beside the database file. [`Vfs`] puts the write-ahead log, the rollback
//! journal, temporary files and the log's index elsewhere; [`SqliteConnector`] opens clients on it for
//! [`tierwise_load`]; [`Database`] keeps the database open, and reads its counters.

mod client;
mod file;
mod places;
mod session;
mod vfs;

pub use client::{SqliteClient, SqliteConnector};
pub use file::{Count, Counts, Requests};
pub use places::Places;
pub use rusqlite::types::Value;
pub use session::{Address, Database};
pub use vfs::Vfs;

/// Version of the SQLite that is compiled in.
pub fn version() -> &'static str {
    rusqlite::version()
}
