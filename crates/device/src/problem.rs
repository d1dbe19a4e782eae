//! What is wrong with one parameter.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// Parameters from which no device can be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {fix}")]
pub struct ParamsError {
    /// What is wrong, naming the field and its value.
    pub message: String,
    /// What to do about it, in the imperative.
    pub fix: String,
}

impl From<Problem> for ParamsError {
    fn from(problem: Problem) -> Self {
        Self {
            message: problem.message,
            fix: problem.fix,
        }
    }
}

/// Refuses a value that is not in `range`, as NaN never is.
pub(crate) fn require<T: PartialOrd + Display>(
    field: &str,
    value: T,
    range: RangeInclusive<T>,
) -> SectionResult<()> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(out_of_range(field, value, &range))
}

pub(crate) fn out_of_range<T: Display>(
    field: &str,
    value: impl Display,
    range: &RangeInclusive<T>,
) -> Problem {
    Problem::new(
        format!("{field} = {value} is impossible"),
        format!("give a value from {} to {}", range.start(), range.end()),
    )
}

/// An error in one parameter: message and fix. [`crate::ProfileError`] adds the name of the file.
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

/// Result of reading or checking a part of the parameters.
pub(crate) type SectionResult<T> = Result<T, Problem>;
