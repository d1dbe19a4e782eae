//! Categories of time, the same for observed and replayed time.

use serde::Serialize;

/// Category of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeCategory {
    /// On a core.
    Cpu,
    /// Runnable; no core was free.
    Runnable,
    /// Waits for the log's device in a call of its own.
    LogDevice,
    /// Waits for another thread's flush of the log.
    LogQueue,
    /// Waits for a read of a file.
    Read,
    /// Waits for a write or sync of a file other than the log.
    Write,
    /// Waits for another thread.
    Lock,
    /// Waits for the client, or in its own thread for the server.
    Client,
    /// Waits for a time, or for work.
    Sleep,
    /// Any other wait.
    Other,
}

impl TimeCategory {
    /// Every category, in the order of reports and of the type itself.
    pub const ALL: [Self; 10] = [
        Self::Cpu,
        Self::Runnable,
        Self::LogDevice,
        Self::LogQueue,
        Self::Read,
        Self::Write,
        Self::Lock,
        Self::Client,
        Self::Sleep,
        Self::Other,
    ];

    /// Its name, as it is serialised.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Runnable => "runnable",
            Self::LogDevice => "log_device",
            Self::LogQueue => "log_queue",
            Self::Read => "read",
            Self::Write => "write",
            Self::Lock => "lock",
            Self::Client => "client",
            Self::Sleep => "sleep",
            Self::Other => "other",
        }
    }
}
