//! The directory of a recording: made under another name, and given its own when the recording is complete.

#[cfg(test)]
#[path = "tests/output.rs"]
mod tests;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use crate::UserError;
use crate::host::directory::{TrustedDirectory, sudo_caller};
use crate::host::processes::{self, ProcessIdentity};

const NEW: &str = "name a new directory";
const WITH_ROOM: &str = "name a new directory on a file system with room";

/// A recording that is being written; removed when this is dropped, unless it was kept.
pub struct UnfinishedRecording {
    out: PathBuf,
    last: OsString,
    name: OsString,
    parent: TrustedDirectory,
    work: TrustedDirectory,
    _entry: LedgerEntry,
}

impl UnfinishedRecording {
    /// Makes a directory beside `out`, which must be new, or the caller's and empty.
    pub fn begin(out: &Path) -> Result<Self, UserError> {
        let pid = std::process::id().cast_signed();
        let began = processes::start_ticks(pid).unwrap_or(0);
        let name = &format!("{PREFIX}{pid}-{began}");
        let refused = |error| UserError::at(out, error, WITH_ROOM);
        let whole = std::path::absolute(out).map_err(refused)?;
        let (Some(parent), Some(last)) = (whole.parent(), whole.file_name()) else {
            return Err(refused(io::ErrorKind::InvalidFilename.into()));
        };
        let parent = TrustedDirectory::open_own(parent, 0)?;
        require_unused_directory(&parent, last, out)?;
        let entry = LedgerEntry::add(&parent.named().map_err(refused)?.join(name))?;
        let work = parent.make(OsStr::new(name), 0o700).map_err(refused)?;
        Ok(Self {
            out: out.to_owned(),
            last: last.to_owned(),
            name: name.into(),
            parent,
            work,
            _entry: entry,
        })
    }

    /// Where it is written: a path for this process alone, which nobody can turn elsewhere.
    pub fn path(&self) -> PathBuf {
        self.work.path()
    }

    /// An error with the directory's own name in place of that path.
    pub fn explain(&self, error: UserError) -> UserError {
        let within = |path: &Path| format!("{}/", path.display());
        let (here, shown) = (within(&self.path()), within(&self.out));
        UserError {
            message: error.message.replace(&here, &shown),
            ..error
        }
    }

    /// Gives it to whoever called `sudo`, and its own name. Nobody else may read it.
    pub fn keep(self) -> Result<(), UserError> {
        let refused = |error| UserError::at(&self.out, error, NEW);
        sudo_caller()
            .map_or(Ok(()), |owner| self.work.give(owner))
            .and_then(|()| self.parent.rename(&self.name, &self.last))
            .map_err(refused)?;
        if !self.work.is_at(&self.parent, &self.last) {
            let problem = "was replaced by another user";
            return Err(UserError::at(&self.out, problem, NEW));
        }
        Ok(())
    }
}

impl Drop for UnfinishedRecording {
    fn drop(&mut self) {
        if self.work.is_at(&self.parent, &self.name) {
            self.parent.remove_flat(&self.name);
        }
    }
}

/// Refuses a directory that holds something, is another user's, or is none.
fn require_unused_directory(
    parent: &TrustedDirectory,
    last: &OsStr,
    out: &Path,
) -> Result<(), UserError> {
    let refused = |error| UserError::at(out, error, NEW);
    let there = match parent.listed(last) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        there => there.map_err(refused)?,
    };
    there.require_own(out)?;
    let mut entries = fs::read_dir(there.path()).map_err(refused)?;
    if entries.next().is_some() {
        let message = format!("{} is not empty", out.display());
        return Err(UserError::new(message, NEW));
    }
    Ok(())
}

// Directories that outlive a killed recorder, entered in tierwise's ledger before they are made.
//
// An entry has the form of `host/ledger.py`: `tierwise clean` removes what it names too.

/// Names that this program gives begin so; it removes nothing else.
pub const PREFIX: &str = "tierwise-record-";

const FIX: &str = "set TIERWISE_RUN_DIR to a directory that only root may write";

#[derive(Serialize, Deserialize)]
struct LedgerEntryFile {
    kind: String,
    name: String,
    owner: ProcessIdentity,
    facts: LedgerEntryFacts,
}

#[derive(Serialize, Deserialize)]
struct LedgerEntryFacts {
    path: PathBuf,
}

/// An entry of this process, removed when this is dropped; the directory must be gone by then.
pub struct LedgerEntry(PathBuf);

impl LedgerEntry {
    /// Enters a directory that is about to be made; its last name must begin with [`PREFIX`].
    pub fn add(path: &Path) -> Result<Self, UserError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let own = ProcessIdentity::of(std::process::id().cast_signed());
        let owner = own.ok_or_else(|| UserError::new("/proc is not mounted", "mount it"))?;
        let text = serde_json::json!(LedgerEntryFile {
            kind: "directory".to_owned(),
            name: name.clone().into_owned(),
            owner,
            facts: LedgerEntryFacts {
                path: path.to_owned(),
            },
        });
        let run_dir = runtime_directory()?;
        let file = run_dir.join(format!("directory-{name}.json"));
        let draft = run_dir.join(format!(".directory-{name}"));
        let written = fs::write(&draft, text.to_string()).and_then(|()| fs::rename(&draft, &file));
        written.map_err(|error| unusable_runtime_directory(&file, error))?;
        Ok(Self(file))
    }
}

impl Drop for LedgerEntry {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Removes the directories of recorders that were killed.
pub fn remove_killed_recordings() -> Result<(), UserError> {
    let run_dir = runtime_directory()?;
    let entries =
        fs::read_dir(&run_dir).map_err(|error| unusable_runtime_directory(&run_dir, error))?;
    for file in entries.flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        let name = name.strip_prefix("directory-");
        let name = name.and_then(|name| name.strip_suffix(".json"));
        let Some(name) = name.filter(|name| name.starts_with(PREFIX)) else {
            continue;
        };
        let text = fs::read(file.path()).unwrap_or_default();
        let Ok(entry) = serde_json::from_slice::<LedgerEntryFile>(&text) else {
            continue;
        };
        let path = &entry.facts.path;
        if !entry.owner.alive() && path.ends_with(name) {
            remove_directory_of_files(path);
            if fs::symlink_metadata(path).is_err() {
                let _ = fs::remove_file(file.path());
            }
        }
    }
    Ok(())
}

fn remove_directory_of_files(directory: &Path) {
    let (parent, name) = (directory.parent(), directory.file_name());
    if let (Some(Ok(parent)), Some(name)) = (parent.map(TrustedDirectory::open_any), name) {
        parent.remove_flat(name);
    }
}

/// Directory of tierwise's run-time state; made on first use.
fn runtime_directory() -> Result<PathBuf, UserError> {
    let named = std::env::var_os("TIERWISE_RUN_DIR").filter(|name| !name.is_empty());
    let path = named.map_or_else(|| PathBuf::from("/run/tierwise"), PathBuf::from);
    let path =
        std::path::absolute(&path).map_err(|error| unusable_runtime_directory(&path, error))?;
    TrustedDirectory::open_own(&path, 0o755).map_err(|error| UserError {
        message: format!("{error}, who could have anything deleted"),
        fix: FIX.to_owned(),
    })?;
    Ok(path)
}

fn unusable_runtime_directory(path: &Path, error: impl std::fmt::Display) -> UserError {
    UserError::at(path, error, FIX)
}
