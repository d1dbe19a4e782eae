//! Errors: why a request cannot be answered.

/// Why a request cannot be answered, in one line, and how to correct it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ReplayError {
    /// What is wrong.
    pub message: String,
    /// How to correct it, in the imperative.
    pub fix: String,
}

impl ReplayError {
    pub(crate) fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            fix: fix.into(),
        }
    }
}
