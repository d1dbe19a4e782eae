//! Errors of a recording's files.

use std::fmt::Display;
use std::path::Path;

use tierwise_input::UserError;

/// A file whose content cannot come from a recorder.
pub(crate) fn damaged(file: &Path, problem: impl Display) -> UserError {
    let fix = "copy the recording again from where it was made, or record again";
    UserError::at(file, problem, fix)
}

pub(crate) fn unreadable(file: &Path, error: &std::io::Error) -> UserError {
    UserError::new(
        format!("cannot read {}: {error}", file.display()),
        "name a folder that tierwise record has written, with all of its files",
    )
}

pub(crate) fn unwritable(file: &Path, error: impl Display) -> UserError {
    UserError::new(
        format!("cannot write {}: {error}", file.display()),
        "name a new folder on a file system with room",
    )
}
