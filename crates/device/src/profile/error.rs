//! What can be wrong with a profile.

/// A profile that cannot be used. The message names the file, the key and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {message}")]
pub struct ProfileError {
    /// The file, as the caller named it.
    pub file: String,
    /// What is wrong, naming the key.
    pub message: String,
    /// What to do about it, in the imperative.
    pub fix: String,
}

/// An error inside a section: message and fix; the file is added by [`crate::Profile::parse`].
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

    pub(crate) fn in_file(self, file: &str) -> ProfileError {
        ProfileError {
            file: file.to_owned(),
            message: self.message,
            fix: self.fix,
        }
    }
}

/// Result of reading a part of a profile.
pub(crate) type SectionResult<T> = Result<T, Problem>;
