//! The configuration of a server.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tierwise_device::{Nanos, Precondition, Profile, ProfileError, ProfileLibrary, SECTOR_BYTES};

use crate::byte_store::{WriteBackPolicy, WriteCacheMode};
use crate::transport::TransportKind;

/// One file of the server: a range of the device's sectors, behind those of the partitions before it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionConfig {
    /// Name; the file is called `NAME.img`.
    pub name: String,
    /// Size; a multiple of 4096.
    pub size_bytes: u64,
}

/// The bytes of the device that a partition has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartitionRange {
    /// First byte on the device.
    pub start: u64,
    pub size: u64,
}

impl PartitionRange {
    /// First byte on the device of a range of the partition; `None` if that is not within it.
    pub fn locate(self, offset: u64, length: u64) -> Option<u64> {
        let end = offset.checked_add(length)?;
        (end <= self.size).then_some(self.start + offset)
    }
}

/// The whole configuration of a server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// Name of the disk, shown as the source of its mount.
    pub name: String,
    /// How requests come; the fastest transport of this kernel when left out.
    #[serde(default)]
    pub transport: Option<TransportKind>,
    /// Empty directory to serve the files in.
    pub mount: PathBuf,
    /// Where to listen for commands, a Unix socket.
    pub socket: PathBuf,
    /// Text of the profile.
    pub profile: String,
    /// File that the text is from, for messages.
    pub profile_file: String,
    /// Texts of the profiles that it refers to, by name.
    pub library: BTreeMap<String, String>,
    /// Seed of everything random in the model.
    pub seed: u64,
    /// The files, in order of their sectors.
    pub partitions: Vec<PartitionConfig>,
    /// Latency of the path to the server, which the server compensates for, in microseconds.
    pub path_us: f64,
    /// Longest busy waiting before an answer is due, in microseconds.
    pub spin_us: f64,
    /// State that the model starts in.
    pub precondition: StartState,
    /// Whether flushes are acknowledged at once and do nothing.
    pub lies_about_flush: bool,
    /// Time after which a completed write is on the medium even without a flush, in seconds.
    pub write_back_s: f64,
}

/// State of a device before it is served.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartState {
    /// Nothing.
    Fresh,
    /// Every sector was written once.
    Sequential,
    /// Every sector was written, then overwritten at random until nothing changes any more.
    Random,
}

impl From<StartState> for Precondition {
    fn from(state: StartState) -> Self {
        match state {
            StartState::Fresh => Self::Fresh,
            StartState::Sequential => Self::Sequential,
            StartState::Random => Self::Random { active_share: 1.0 },
        }
    }
}

/// Most unflushed bytes that a disk keeps: the size of large write caches.
const UNFLUSHED_BYTES_MAX: u64 = 64 << 20;

/// Partitions start and end at multiples of this many bytes.
pub const ALIGNMENT_BYTES: u64 = 4096;

impl ServerConfig {
    /// Reads a configuration from JSON and checks the sizes.
    pub fn parse(json: &str) -> Result<Self, DiskError> {
        let config: Self = serde_json::from_str(json)?;
        for partition in &config.partitions {
            if partition.size_bytes == 0 || !partition.size_bytes.is_multiple_of(ALIGNMENT_BYTES) {
                return Err(DiskError::Size {
                    name: partition.name.clone(),
                    size_bytes: partition.size_bytes,
                    unit: ALIGNMENT_BYTES,
                });
            }
        }
        Ok(config)
    }

    /// The profile of the device.
    pub fn profile(&self) -> Result<Profile, DiskError> {
        let library = ProfileLibrary::new(self.library.clone());
        Ok(Profile::parse_with(
            &self.profile,
            &self.profile_file,
            &library,
        )?)
    }

    /// When completed writes are safe on a device of this profile.
    pub fn write_cache(&self, profile: &Profile) -> Result<WriteCacheMode, DiskError> {
        match (profile.write_cache(), self.lies_about_flush) {
            (true, true) => Ok(WriteCacheMode::Lying),
            (true, false) => Ok(WriteCacheMode::Volatile),
            (false, false) => Ok(WriteCacheMode::Safe),
            (false, true) => Err(DiskError::NothingToLieAbout(profile.name().into())),
        }
    }

    /// When the device writes back of its own accord.
    pub fn write_back(&self) -> WriteBackPolicy {
        WriteBackPolicy {
            after: (self.write_back_s * 1e9) as Nanos,
            most_bytes: UNFLUSHED_BYTES_MAX,
        }
    }

    /// Directory of the disk's own files.
    pub fn home(&self) -> &Path {
        self.socket.parent().unwrap_or(&self.socket)
    }

    /// What each partition has of the device.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = PartitionRange> {
        self.partitions.iter().scan(0, |end, partition| {
            let (start, size) = (*end, partition.size_bytes);
            *end += size;
            Some(PartitionRange { start, size })
        })
    }

    /// Sum of the sizes.
    pub fn size_bytes(&self) -> u64 {
        self.partitions
            .iter()
            .map(|partition| partition.size_bytes)
            .sum()
    }

    /// Refuses partitions that do not fit a device.
    pub fn require_fit(&self, capacity_sectors: u64) -> Result<(), DiskError> {
        let capacity_bytes = capacity_sectors * SECTOR_BYTES;
        match self.size_bytes() {
            asked_bytes if asked_bytes > capacity_bytes => Err(DiskError::TooLarge {
                asked_bytes,
                capacity_bytes,
            }),
            _ => Ok(()),
        }
    }
}

// Errors before a disk is served.

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
    /// The same of block devices of the server itself.
    #[error("no ublk here: {0}; it needs Linux 6.5 and its module (modprobe ublk_drv)")]
    NoUblk(io::Error),
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
