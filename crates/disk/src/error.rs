//! Errors before a disk is served.

use std::io;

use tierwise_device::ProfileError;

/// Why a disk cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The configuration is not what [`crate::ServerConfig`] describes.
    #[error("configuration: {0}")]
    Config(#[from] serde_json::Error),
    /// A partition has no name, no size, or a size that is no multiple of a sector.
    #[error("partition {name:?}: size of {size_bytes} bytes is not a positive multiple of {unit}")]
    Size {
        /// Name of the partition.
        name: String,
        /// Size asked for.
        size_bytes: u64,
        /// What it must be a multiple of, in bytes.
        unit: u64,
    },
    /// The partitions do not fit on the device.
    #[error("partitions of {asked_bytes} bytes do not fit the device of {capacity_bytes} bytes")]
    TooLarge {
        /// Sum of the sizes.
        asked_bytes: u64,
        /// Size of the device that the profile describes.
        capacity_bytes: u64,
    },
    /// A device without a volatile cache cannot lie about flushes.
    #[error("{0} has no volatile write cache to lie about")]
    NothingToLieAbout(String),
    /// The transport that was asked for does not exist here.
    #[error(
        "no FUSE over io_uring here: it needs Linux 6.14 with CONFIG_FUSE_IO_URING, and io_uring allowed"
    )]
    NoIoUring,
    /// The profile cannot be read.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The system refused.
    #[error("{what}: {source}")]
    System {
        /// The operation.
        what: &'static str,
        /// The answer.
        source: io::Error,
    },
}

impl DiskError {
    /// Wraps the error of a system call with the operation.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}
