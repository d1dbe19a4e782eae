//! SQLite with each kind of its files in a directory of its own: the VFS that does this, clients, and the one
//! connection that looks after the database.
//!
//! SQLite keeps all its files beside the database file. [`PlacingVfs`] puts the write-ahead log, the rollback
//! journal, temporary files and the log's index elsewhere; [`SqliteConnector`] opens clients on it for
//! [`tierwise_load`]; [`OpenDatabase`] keeps the database open, and reads its counters.

mod counted_file;
mod file_directories;
mod placing_vfs;
mod sqlite_client;
mod sqlite_connection;

pub use counted_file::{FileRequests, RequestTotals, SharedCount};
pub use file_directories::FileDirectories;
pub use placing_vfs::PlacingVfs;
pub use rusqlite::types::Value;
pub use sqlite_client::{SqliteClient, SqliteConnector};
pub use sqlite_connection::{DatabaseAddress, OpenDatabase};

/// Version of the SQLite that is compiled in.
pub fn version() -> &'static str {
    rusqlite::version()
}
