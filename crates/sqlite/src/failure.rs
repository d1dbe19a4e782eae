//! SQLite's errors in the form that clients report.

use rusqlite::{Error, ErrorCode};
use tierwise_load::Failure;

use crate::vfs::Vfs;

/// The failure of a statement; where a device refused, including the request that it refused.
pub(crate) fn failure(error: &Error, vfs: &Vfs) -> Failure {
    let message = message(error);
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Failure {
            retry: true,
            ..Failure::new(message)
        },
        Some(ErrorCode::OperationInterrupted) => Failure::capped(message),
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => {
            let refused = vfs.failure().map(|refused| format!(" ({refused})"));
            Failure::new(message + &refused.unwrap_or_default())
        }
        _ => Failure::new(message),
    }
}

/// In SQLite's words, without the statement, which callers name themselves.
fn message(error: &Error) -> String {
    match error {
        Error::SqliteFailure(_, Some(message)) | Error::SqlInputError { msg: message, .. } => {
            message.clone()
        }
        other => other.to_string(),
    }
}
