//! Errors in the input of a simulation.

use std::path::Path;

/// A simulation that cannot run, in one line that names file, line and column, or the option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SimulateError {
    /// What is wrong.
    pub message: String,
    /// What to do about it, in the imperative.
    pub fix: String,
}

impl SimulateError {
    pub(crate) fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            fix: fix.into(),
        }
    }

    pub(crate) fn unreadable(file: &Path, error: &dyn std::fmt::Display) -> Self {
        Self::new(
            format!("cannot read {}: {error}", file.display()),
            "give a readable CSV file, or one compressed with gzip",
        )
    }

    pub(crate) fn unwritable(file: &Path, error: &dyn std::fmt::Display) -> Self {
        Self::new(
            format!("cannot write {}: {error}", file.display()),
            "give --times a file in a writable directory with room",
        )
    }
}
