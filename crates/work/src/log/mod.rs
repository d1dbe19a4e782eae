//! The database's log: its flushes, which commits share them, its second copy, SQLite's checkpoints.
//!
//! Nothing here knows of turns or transactions.

pub(crate) mod flushes;
pub(crate) mod log_replica;
