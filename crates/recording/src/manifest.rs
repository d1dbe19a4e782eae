//! `about.json` on disk: the recording's description of itself, and length and checksum of each table file.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tierwise_input::{Links, UserError};

use crate::{About, FORMAT_VERSION};

/// The first word of every `about.json`.
pub(crate) const FORMAT: &str = "tierwise recording";
const FILE: &str = "about.json";
/// Longest `about.json`: a day of bursts of a second has about 2 MB.
const MOST_BYTES: u64 = 8 << 20;

/// Required length and checksum of a table's file, so that a damaged one is known before it is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TableFile {
    pub rows: u64,
    pub size_bytes: u64,
    pub crc32: u32,
}

/// The whole of `about.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Manifest {
    #[serde(flatten)]
    pub about: About,
    pub tables: BTreeMap<String, TableFile>,
}

/// File of a table.
pub(crate) fn table_path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.parquet"))
}

/// Whether a recording is there already.
pub(crate) fn recording_exists(directory: &Path) -> bool {
    directory.join(FILE).exists()
}

impl Manifest {
    /// Written last and put in its place at once: a folder without it is no recording.
    pub fn write(&self, directory: &Path) -> Result<(), UserError> {
        let file = directory.join(FILE);
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| unwritable_file_error(&file, error))?;
        let part = directory.join("about.json.part");
        create_private_file(&part)
            .and_then(|mut opened| opened.write_all((text + "\n").as_bytes()))
            .and_then(|()| fs::rename(&part, &file))
            .map_err(|error| unwritable_file_error(&file, error))
    }

    /// Read it, and refuse a file that is no recording or is newer than this program.
    pub fn read(directory: &Path) -> Result<Self, UserError> {
        let file = directory.join(FILE);
        let read = tierwise_input::read(&file, Links::Refuse, MOST_BYTES);
        let bytes = read.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
                not_a_recording(directory)
            }
            _ => unreadable(&file, &error),
        })?;
        require_known_version(&file, &bytes)?;
        // One part after the other: what a part does not name takes no memory.
        let damaged = |error| damaged_file_error(&file, error);
        let about = serde_json::from_slice(&bytes).map_err(damaged)?;
        let ManifestTables { tables } = serde_json::from_slice(&bytes).map_err(damaged)?;
        Ok(Self { about, tables })
    }
}

/// The part of `about.json` that tells whether it is one.
#[derive(Deserialize)]
struct ManifestFormat {
    format: String,
}

/// The part of `about.json` that tells whether this program reads it.
#[derive(Deserialize)]
struct ManifestVersion {
    version: u64,
}

/// The part of `about.json` that is not [`About`].
#[derive(Deserialize)]
struct ManifestTables {
    tables: BTreeMap<String, TableFile>,
}

fn not_a_recording(directory: &Path) -> UserError {
    let fix = "name a folder that tierwise record has written to its end";
    let problem = if directory.is_dir() {
        "is no recording: it has no about.json, which is written last"
    } else {
        "is no folder"
    };
    UserError::new(format!("{} {problem}", directory.display()), fix)
}

fn require_known_version(file: &Path, about: &[u8]) -> Result<(), UserError> {
    let damaged = |problem: &dyn Display| damaged_file_error(file, problem);
    match serde_json::from_slice::<ManifestFormat>(about) {
        Ok(found) if found.format == FORMAT => {}
        Err(error) if !error.is_data() => return Err(damaged(&error)),
        _ => {
            return Err(UserError::new(
                format!("{}: format is not \"{FORMAT}\"", file.display()),
                "name a folder that tierwise record has written",
            ));
        }
    }
    match serde_json::from_slice::<ManifestVersion>(about) {
        Ok(found) if found.version == u64::from(FORMAT_VERSION) => Ok(()),
        Ok(found) if found.version > u64::from(FORMAT_VERSION) => Err(UserError::new(
            format!(
                "{}: version {} of the format is newer than {FORMAT_VERSION}, which this program reads",
                file.display(),
                found.version
            ),
            "use the version of tierwise that recorded it, or a later one",
        )),
        _ => Err(damaged(&"version is not that of any format")),
    }
}

// The checksum of a file: of one that is read, and of one while it is written.

/// Bytes that are read at once.
const PART_BYTES: usize = 64 << 10;

/// The checksum of the first bytes of a file.
pub(crate) fn checksum(file: &File, size_bytes: u64) -> io::Result<u32> {
    let (mut sum, mut part) = (crc32fast::Hasher::new(), vec![0; PART_BYTES]);
    let mut at = 0;
    while at < size_bytes {
        let left = usize::try_from(size_bytes - at).unwrap_or(PART_BYTES);
        let read = file.read_at(&mut part[..left.min(PART_BYTES)], at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        sum.update(&part[..read]);
        at += read as u64;
    }
    Ok(sum.finalize())
}

/// Counts and sums up the bytes that pass through.
pub(crate) struct ChecksumStream<W> {
    inner: W,
    bytes: u64,
    sum: crc32fast::Hasher,
}

impl<W: Write> ChecksumStream<W> {
    pub fn new(inner: W) -> Self {
        Self {
            inner,
            bytes: 0,
            sum: crc32fast::Hasher::new(),
        }
    }

    /// The inner writer, the number of bytes, and their checksum.
    pub fn end(self) -> (W, u64, u32) {
        (self.inner, self.bytes, self.sum.finalize())
    }
}

impl<W: Write> Write for ChecksumStream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.sum.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

// Files and folders of a recording, which only its owner may read from their first moment on.

/// A new file; one that is there already, or a link, is refused.
pub(crate) fn create_private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

/// A folder, with those above it that are missing; one that is there keeps its mode.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

// Errors of a recording's files.

/// A file whose content cannot come from a recorder.
pub(crate) fn damaged_file_error(file: &Path, problem: impl Display) -> UserError {
    let fix = "copy the recording again from where it was made, or record again";
    UserError::at(file, problem, fix)
}

pub(crate) fn unreadable(file: &Path, error: &std::io::Error) -> UserError {
    UserError::new(
        format!("cannot read {}: {error}", file.display()),
        "name a folder that tierwise record has written, with all of its files",
    )
}

pub(crate) fn unwritable_file_error(file: &Path, error: impl Display) -> UserError {
    UserError::new(
        format!("cannot write {}: {error}", file.display()),
        "name a new folder on a file system with room",
    )
}
