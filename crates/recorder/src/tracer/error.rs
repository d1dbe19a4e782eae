//! Errors that keep a tracer from starting or going on.

use std::io;
use std::path::Path;

/// A tracer that cannot run, in one line that names file or option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TracerError {
    /// What is wrong.
    pub message: String,
    /// What to do about it, in the imperative.
    pub fix: String,
}

impl TracerError {
    pub(crate) fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            fix: fix.into(),
        }
    }

    pub(crate) fn tracefs(path: &Path, error: &io::Error) -> Self {
        let fix = match error.kind() {
            io::ErrorKind::PermissionDenied => "record as root",
            io::ErrorKind::NotFound => {
                "record on a kernel of 5.10 or later with event tracing (CONFIG_FTRACE_SYSCALLS)"
            }
            _ => "see whether another tracer holds it, or the kernel locks tracing down",
        };
        Self::new(format!("tracing: {}: {error}", path.display()), fix)
    }

    /// Events could not be moved from the kernel to the file that keeps them.
    pub(crate) fn unreadable(error: &io::Error) -> Self {
        let (what, fix) = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => (
                "write the recording",
                "free space there, record for a shorter time or less often (--duty), or name another directory",
            ),
            _ => (
                "read the events",
                "see that no core is switched off while recording",
            ),
        };
        Self::new(format!("cannot {what}: {error}"), fix)
    }
}
