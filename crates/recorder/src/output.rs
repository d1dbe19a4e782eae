//! The directory of a recording: made under another name, and given its own when the recording is complete.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::UserError;
use crate::host::directory::{Directory, sudo_caller};
use crate::host::paths::entries;
use crate::ledger::Entry;

const NEW: &str = "name a new directory";
const WITH_ROOM: &str = "name a new directory on a file system with room";

/// A recording that is being written; removed when this is dropped, unless it was kept.
pub struct Output {
    out: PathBuf,
    last: OsString,
    name: OsString,
    parent: Directory,
    work: Directory,
    _entry: Entry,
}

impl Output {
    /// Makes a directory of this name beside `out`, which must be new, or the caller's and empty.
    pub fn begin(out: &Path, name: &str) -> Result<Self, UserError> {
        let refused = |error| UserError::at(out, error, WITH_ROOM);
        let whole = std::path::absolute(out).map_err(refused)?;
        let (Some(parent), Some(last)) = (whole.parent(), whole.file_name()) else {
            return Err(refused(io::ErrorKind::InvalidFilename.into()));
        };
        let parent = Directory::open_own(parent, 0)?;
        require_unused(&parent, last, out)?;
        let entry = Entry::add(&parent.named().map_err(refused)?.join(name))?;
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

    pub fn size_bytes(&self) -> u64 {
        let files = entries(self.path());
        let sizes = files.filter_map(|file| Some(file.metadata().ok()?.len()));
        sizes.sum()
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

impl Drop for Output {
    fn drop(&mut self) {
        if self.work.is_at(&self.parent, &self.name) {
            self.parent.remove_flat(&self.name);
        }
    }
}

/// Refuses a directory that holds something, is another user's, or is none.
fn require_unused(parent: &Directory, last: &OsStr, out: &Path) -> Result<(), UserError> {
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

#[cfg(test)]
#[path = "tests/output.rs"]
mod tests;
