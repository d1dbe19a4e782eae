//! What can be wrong with a question.

/// A question that cannot be answered, in one line, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ReplayError {
    /// What is wrong.
    pub message: String,
    /// What to do about it, in the imperative.
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
