//! The text of a rules file.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::{Role, ThreadClass};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Text {
    pub engine: String,
    pub tested: Option<String>,
    #[serde(rename = "source")]
    _source: String,
    #[serde(default)]
    pub settings: Vec<String>,
    pub data_directory: Option<DataDirectory>,
    #[serde(default)]
    pub untold: Vec<Role>,
    /// Protocol by which its counters are read, for a caller with a DSN.
    pub counters: Option<String>,
    /// Whether the engine is a library: its programs hold databases themselves.
    #[serde(default)]
    pub embedded: bool,
    pub programs: Vec<String>,
    pub file: Vec<FileText>,
    #[serde(default)]
    pub content: Vec<ContentText>,
    #[serde(default)]
    pub thread: Vec<ThreadText>,
}

/// Where the data directory is found.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum DataDirectory {
    #[serde(rename = "working directory")]
    WorkingDirectory,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileText {
    pub path: String,
    #[serde(deserialize_with = "role_of_files")]
    pub role: Role,
}

/// Bytes by which a file is known whatever its name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ContentText {
    pub offset: u16,
    pub hex: String,
    #[serde(deserialize_with = "role_of_files")]
    pub role: Role,
}

fn role_of_files<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Role, D::Error> {
    let name = String::deserialize(deserializer)?;
    Role::of_files(&name).ok_or_else(|| D::Error::custom(format!("{name:?} is no role of a file")))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ThreadText {
    pub process: Option<String>,
    pub command: Option<String>,
    pub thread: Option<String>,
    pub class: ClassText,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClassText {
    Session,
    Client,
    LogWriter,
    Background,
    Other,
}

impl From<ClassText> for ThreadClass {
    fn from(text: ClassText) -> Self {
        match text {
            ClassText::Session => Self::Session,
            ClassText::Client => Self::Client,
            ClassText::LogWriter => Self::LogWriter,
            ClassText::Background => Self::Background,
            ClassText::Other => Self::Other,
        }
    }
}
