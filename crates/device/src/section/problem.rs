//! What is wrong with one key of a profile.

/// An error inside a table: message and fix. [`crate::ProfileError`] adds the name of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) fix: String,
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            fix: fix.into(),
        }
    }
}

/// Result of reading a part of a profile.
pub(crate) type SectionResult<T> = Result<T, Problem>;
