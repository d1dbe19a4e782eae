//! Errors of a recording.

use std::fmt::Display;
use std::path::Path;

/// A recording that cannot be read or written, in one line that names the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RecordingError {
    /// What is wrong.
    pub message: String,
    /// What to do about it, in the imperative.
    pub fix: String,
}

impl RecordingError {
    pub(crate) fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            fix: fix.into(),
        }
    }

    /// A file whose content cannot come from a recorder.
    pub(crate) fn damaged(file: &Path, problem: impl Display) -> Self {
        Self::new(
            format!("{}: {problem}", file.display()),
            "copy the recording again from where it was made, or record again",
        )
    }

    pub(crate) fn unreadable(file: &Path, error: &std::io::Error) -> Self {
        Self::new(
            format!("cannot read {}: {error}", file.display()),
            "name a folder that tierwise record has written, with all of its files",
        )
    }

    pub(crate) fn unwritable(file: &Path, error: impl Display) -> Self {
        Self::new(
            format!("cannot write {}: {error}", file.display()),
            "name a new folder on a file system with room",
        )
    }
}
