//! Measures a real device: timed requests past the page cache, at a given depth.
//!
//! [`MeasuredTarget`] is the measured device or file, [`run_requests`] lets an engine serve requests from it, and a [`CompletionSink`]
//! takes each request's time: [`CountedRequests`] for distributions and rates, [`RequestTimes`] for every single one.
//! [`measure_pattern`] and [`time_listed_requests`] do both steps at once.

use std::io;
use std::path::PathBuf;

mod aligned_buffers;
mod measured_target;
mod probe_engine;
mod thread_engine;
mod uring_engine;

pub use measured_target::MeasuredTarget;
pub use probe_engine::{
    CompletionSink, CountedRequests, DoneRequest, MeasuredRun, ProbeEngine, ProbeLimit,
    RequestTimes, fill_target, measure_pattern, run_requests, time_listed_requests,
};

// Errors of a probe, and their fixes.

/// A probe that cannot start, or broke off.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The file system serves no request past the page cache.
    #[error("{}: this file system has no direct I/O (O_DIRECT)", .0.display())]
    NoDirectIo(PathBuf),
    /// The block device is mounted or held by a driver.
    #[error("{}: the device is in use", .0.display())]
    InUse(PathBuf),
    /// The file or device cannot be opened or made.
    #[error("{}: {error}", path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        error: io::Error,
    },
    /// A request failed.
    #[error("{what} of {bytes} bytes at byte {offset}: {error}")]
    Request {
        /// Read, write or flush.
        what: &'static str,
        /// Its length.
        bytes: u64,
        /// Where.
        offset: u64,
        /// What the kernel said.
        error: io::Error,
    },
    /// A request that the target cannot take.
    #[error("{0}")]
    BadRequest(String),
    /// The kernel gives no ring, or no thread.
    #[error("cannot start {engine}: {error}")]
    Engine {
        /// Name of the engine.
        engine: &'static str,
        /// What the kernel said.
        error: io::Error,
    },
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
}

impl ProbeError {
    /// What to do about it, in the imperative.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::NoDirectIo(_) => {
                "name a directory on ext4, xfs, btrfs, or on tmpfs with Linux 6.6 or later"
            }
            Self::InUse(_) => "unmount it, or name a directory of its file system instead",
            Self::Open { .. } => "name a directory or device that you may write",
            Self::Request { error, .. } if error.raw_os_error() == Some(libc::ENOSPC) => {
                "make room, or give a smaller --size"
            }
            Self::Request { .. } => "see the kernel's log with dmesg",
            Self::BadRequest(_) => "ask for whole blocks inside the file",
            Self::Engine { .. } => "use --engine threads, or raise the limit of locked memory",
            Self::Stopped => "start again",
        }
    }
}
