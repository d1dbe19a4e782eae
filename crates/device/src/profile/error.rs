//! What can be wrong with a profile.

use crate::problem::Problem;

/// A profile that cannot be used. The message names the file, the key and its value; the fix says what to do.
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

impl ProfileError {
    pub(crate) fn new(problem: Problem, file: &str) -> Self {
        Self {
            file: file.to_owned(),
            message: problem.message,
            fix: problem.fix,
        }
    }
}
