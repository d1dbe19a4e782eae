//! The error of a recording, with its fix.

use std::fmt::Display;
use std::path::Path;

use tierwise_recording::{RecordingError, RulesError};

/// A recording that cannot be made, in one line that names file or option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RecordError {
    /// What is wrong.
    pub message: String,
    /// What to do about it, in the imperative.
    pub fix: String,
}

impl RecordError {
    /// One with these texts.
    pub fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            fix: fix.into(),
        }
    }

    pub(crate) fn at(path: &Path, error: impl Display, fix: &str) -> Self {
        Self::new(format!("{}: {error}", path.display()), fix)
    }
}

impl From<RecordingError> for RecordError {
    fn from(error: RecordingError) -> Self {
        Self::new(error.message, error.fix)
    }
}

impl From<RulesError> for RecordError {
    fn from(error: RulesError) -> Self {
        Self::new(error.message, error.fix)
    }
}
