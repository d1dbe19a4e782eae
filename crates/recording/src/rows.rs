//! The rows of the tables.

use serde::{Deserialize, Serialize};

/// An index that names nothing.
pub const NONE: u32 = u32::MAX;

/// An offset or sector that the kernel did not report.
pub const UNKNOWN: u64 = u64::MAX;

/// Class of a thread, by its part in the work of the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ThreadClass {
    /// Serves one client: a backend process, a connection's thread, or the caller of an embedded engine.
    Session,
    /// The client's own thread, when it runs on the same machine.
    Client,
    /// Writes or flushes the log for others.
    LogWriter,
    /// Works for no client in particular: checkpointer, page cleaner, compaction, parallel worker.
    Background,
    /// Of the kernel: journal, write-back, loop devices.
    Kernel,
    /// Anything else that was seen.
    #[default]
    Other,
}

/// A thread that was seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// Process (thread group) id.
    pub pid: i32,
    /// Thread id.
    pub tid: i32,
    /// Name the kernel shows.
    pub name: String,
    /// Its class.
    pub class: ThreadClass,
}

/// A file that was used.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct File {
    /// Path as opened; a socket or pipe as the kernel writes it, `socket:[1]`.
    pub path: String,
    /// Its role, by the engine's rules; none for sockets and files outside of the database.
    pub role: Option<Role>,
    /// Index in [`crate::About::devices`], or [`crate::NONE`].
    pub device: u32,
    /// Size when the recording ended.
    pub size_bytes: u64,
}

/// Whether a thread ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StateKind {
    /// On a core.
    #[default]
    Cpu,
    /// Could run; no core was free.
    Runnable,
    /// Waits for something, until it is woken.
    Blocked,
}

/// One stretch of a thread's time. States of a thread follow each other without gap or overlap in a burst.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct State {
    /// Index of the thread.
    pub thread: u32,
    /// From.
    pub start_ns: u64,
    /// To.
    pub end_ns: u64,
    /// Whether it ran.
    pub kind: StateKind,
    /// Core it ran on or was last on.
    pub cpu: u16,
    /// Of a blocked state: the thread that woke it, if it is known and recorded; none for interrupts.
    pub waker: u32,
    /// Index of the call it was in, or [`crate::NONE`].
    pub call: u32,
}

/// Kind of a system call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// `read`, `pread`, `readv`, `preadv` of a file.
    Read,
    /// `write`, `pwrite`, `writev`, `pwritev` of a file.
    Write,
    /// `fsync`, `fdatasync`, `sync_file_range`, `msync`.
    Sync,
    /// `fallocate`, `ftruncate`: changes a file's size.
    Resize,
    /// `open`, `unlink`, `rename`: changes names.
    Name,
    /// Bytes from a socket or pipe.
    Receive,
    /// Bytes to a socket or pipe.
    Send,
    /// `epoll_wait`, `poll`, `select`: waits for any of several files or for a time.
    Poll,
    /// `futex`, `semop`: waits for, or wakes, another thread.
    Lock,
    /// `nanosleep` and the like.
    Sleep,
    /// Waits for requests handed in asynchronously: `io_uring_enter`, `io_getevents`.
    Await,
    /// Any other that was traced.
    #[default]
    Other,
}

/// Whether a session is in a transaction, as the last reply in a call tells its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransactionStatus {
    /// What was sent does not end with a status, or is encrypted.
    Unknown,
    /// In none.
    Idle,
    /// In one.
    InTransaction,
    /// In one that can only be rolled back.
    Failed,
}

/// One system call, or one asynchronous request from its submission to its completion.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Call {
    /// Index of the thread.
    pub thread: u32,
    /// Entered or submitted.
    pub start_ns: u64,
    /// Left or completed; the end of the burst if it was still under way.
    pub end_ns: u64,
    /// Its kind.
    pub kind: CallKind,
    /// Index of the file, or [`crate::NONE`].
    pub file: u32,
    /// Where in the file, or [`crate::UNKNOWN`].
    pub offset_bytes: u64,
    /// Number of bytes moved.
    pub size_bytes: u64,
    /// Whether the caller went on before it was done (io_uring, aio).
    pub asynchronous: bool,
    /// Whether it ended in an error.
    pub failed: bool,
    /// Of a call that sends: the status in its last bytes; none where they were not looked at.
    pub transaction_status: Option<TransactionStatus>,
}

/// Operation of a block request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BlockOp {
    /// From the medium.
    #[default]
    Read,
    /// To the device.
    Write,
    /// Makes all acknowledged writes durable.
    Flush,
    /// A range is no longer needed.
    Discard,
}

/// One request to a block device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Block {
    /// Index in [`crate::About::devices`].
    pub device: u32,
    /// First sector, of 512 bytes, of the partition.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u32,
    /// Its operation.
    pub op: BlockOp,
    /// Durable before it completes.
    pub fua: bool,
    /// A flush comes before it.
    pub preflush: bool,
    /// A thread waits for it.
    pub sync: bool,
    /// Of the file system's own structures, its journal among them.
    pub meta: bool,
    /// Given to the device.
    pub issued_ns: u64,
    /// Done.
    pub completed_ns: u64,
    /// Thread that submitted it, or [`crate::NONE`].
    pub thread: u32,
    /// File it belongs to, or [`crate::NONE`].
    pub file: u32,
}

// Roles of files; the same words as everywhere.

/// Role of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Write-ahead log, redo log, logical log.
    Log,
    /// Physical log, rollback journal.
    Doublewrite,
    /// Tables.
    Data,
    /// Indexes.
    Index,
    /// Undo or rollback segments.
    Undo,
    /// Sorts, hash joins and temporary tables that spill.
    Temp,
    /// Catalogue, control files and files without a role of their own.
    System,
    /// Archived log, binary log.
    Archive,
    /// Tables and indexes that a question places apart from the others. No recording has it, and no rule gives it.
    Selected,
}

impl Role {
    /// Every role, in the order of reports.
    pub const ALL: [Self; 9] = [
        Self::Log,
        Self::Doublewrite,
        Self::Data,
        Self::Index,
        Self::Undo,
        Self::Temp,
        Self::System,
        Self::Archive,
        Self::Selected,
    ];

    /// The roles that a file of a recording may have.
    pub fn all_of_files() -> impl Iterator<Item = Self> {
        let all = Self::ALL.into_iter();
        all.filter(|role| *role != Self::Selected)
    }

    /// The one of them with this name.
    #[must_use]
    pub fn of_files(name: &str) -> Option<Self> {
        Self::all_of_files().find(|role| role.name() == name)
    }

    /// Its name, as in placements.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Doublewrite => "doublewrite",
            Self::Data => "data",
            Self::Index => "index",
            Self::Undo => "undo",
            Self::Temp => "temp",
            Self::System => "system",
            Self::Archive => "archive",
            Self::Selected => "selected",
        }
    }
}
