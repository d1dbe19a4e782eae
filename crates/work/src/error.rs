//! Reasons why a recording cannot become work.

/// A recording that yields no work, in one line that names the missing part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WorkError {
    /// What is wrong.
    pub message: String,
    /// How to correct it, in the imperative.
    pub fix: String,
}

impl WorkError {
    pub(crate) fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            fix: fix.into(),
        }
    }
}
