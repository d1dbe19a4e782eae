//! `about.json` on disk: the recording's description of itself, and length and checksum of each table file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{About, FORMAT_VERSION, RecordingError};

/// The first word of every `about.json`.
pub(crate) const FORMAT: &str = "tierwise recording";
const FILE: &str = "about.json";

/// Required length and checksum of a table's file, so that a damaged one is known before it is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TableFile {
    pub rows: u64,
    pub size_bytes: u64,
    pub crc32: u32,
}

/// The whole of `about.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
pub(crate) fn exists(directory: &Path) -> bool {
    directory.join(FILE).exists()
}

impl Manifest {
    /// Written last and put in its place at once: a folder without it is no recording.
    pub fn write(&self, directory: &Path) -> Result<(), RecordingError> {
        let file = directory.join(FILE);
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| RecordingError::unwritable(&file, error))?;
        let part = directory.join("about.json.part");
        fs::write(&part, text + "\n")
            .and_then(|()| fs::rename(&part, &file))
            .map_err(|error| RecordingError::unwritable(&file, error))
    }

    /// Read it, and refuse a file that is no recording or is newer than this program.
    pub fn read(directory: &Path) -> Result<Self, RecordingError> {
        let file = directory.join(FILE);
        let bytes = fs::read(&file).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => no_recording(directory),
            _ => RecordingError::unreadable(&file, &error),
        })?;
        let value: Value = serde_json::from_slice(&bytes)
            .map_err(|error| RecordingError::damaged(&file, error))?;
        require_ours(&file, &value)?;
        serde_json::from_value(value).map_err(|error| RecordingError::damaged(&file, error))
    }
}

fn no_recording(directory: &Path) -> RecordingError {
    let fix = "name a folder that tierwise record has written to its end";
    let problem = if directory.is_dir() {
        "is no recording: it has no about.json, which is written last"
    } else {
        "is no folder"
    };
    RecordingError::new(format!("{} {problem}", directory.display()), fix)
}

fn require_ours(file: &Path, value: &Value) -> Result<(), RecordingError> {
    if value.get("format").and_then(Value::as_str) != Some(FORMAT) {
        return Err(RecordingError::new(
            format!("{}: format is not \"{FORMAT}\"", file.display()),
            "name a folder that tierwise record has written",
        ));
    }
    match value.get("version").and_then(Value::as_u64) {
        Some(version) if version == u64::from(FORMAT_VERSION) => Ok(()),
        Some(version) if version > u64::from(FORMAT_VERSION) => Err(RecordingError::new(
            format!(
                "{}: version {version} of the format is newer than {FORMAT_VERSION}, which this program reads",
                file.display()
            ),
            "use the version of tierwise that recorded it, or a later one",
        )),
        _ => Err(RecordingError::damaged(
            file,
            "version is not that of any format",
        )),
    }
}
