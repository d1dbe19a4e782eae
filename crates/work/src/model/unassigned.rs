//! What a recording has beside the work: files that no rule gives a role.

use serde::Serialize;

/// A file without a role.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UnassignedFile {
    /// Its path.
    pub path: String,
    /// Its part of all flushes.
    pub flush_share: f64,
    /// Its part of all waits in calls on files.
    pub wait_share: f64,
    /// Whether it is written in order and flushed, as a log is.
    pub is_like_log: bool,
}
