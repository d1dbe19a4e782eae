//! The directory of a recording: made under another name, and given its own when the recording is complete.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};

use crate::RecordError;
use crate::ledger::{self, Entry};

/// A recording that is being written; removed when this is dropped, unless it was kept.
pub struct Output {
    out: PathBuf,
    work: PathBuf,
    _entry: Entry,
}

impl Output {
    /// Makes a directory of this name beside `out`, which must be new or empty.
    pub fn begin(out: &Path, name: &str) -> Result<Self, RecordError> {
        let entries = fs::read_dir(out);
        if entries.is_ok_and(|mut entries| entries.next().is_some()) {
            let shown = out.display();
            return Err(RecordError::new(
                format!("{shown} is not empty"),
                "name a new directory",
            ));
        }
        let refused = |error| {
            RecordError::at(
                out,
                error,
                "name a new directory on a file system with room",
            )
        };
        let parent = match out.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let parent = fs::canonicalize(parent).map_err(refused)?;
        let last = out
            .file_name()
            .ok_or_else(|| refused(io::ErrorKind::InvalidFilename.into()))?;
        let work = parent.join(name);
        let entry = Entry::add(&work)?;
        DirBuilder::new()
            .mode(0o700)
            .create(&work)
            .map_err(refused)?;
        Ok(Self {
            out: parent.join(last),
            work,
            _entry: entry,
        })
    }

    /// Where it is written.
    pub fn path(&self) -> &Path {
        &self.work
    }

    /// Size of its files.
    pub fn size_bytes(&self) -> u64 {
        let files = fs::read_dir(&self.work).into_iter().flatten().flatten();
        files
            .filter_map(|file| Some(file.metadata().ok()?.len()))
            .sum()
    }

    /// Gives it to whoever called `sudo`, and its own name. Nobody else may read it.
    pub fn keep(self) -> Result<(), RecordError> {
        let refused = |error| RecordError::at(&self.out, error, "name a new directory");
        self.give()
            .and_then(|()| fs::rename(&self.work, &self.out))
            .map_err(refused)
    }

    fn give(&self) -> io::Result<()> {
        let id = |name| std::env::var(name).ok()?.parse::<u32>().ok();
        let owner = id("SUDO_UID").zip(id("SUDO_GID"));
        for file in fs::read_dir(&self.work)? {
            let file = file?.path();
            fs::set_permissions(&file, Permissions::from_mode(0o600))?;
            if let Some((user, group)) = owner {
                lchown(&file, Some(user), Some(group))?;
            }
        }
        owner.map_or(Ok(()), |(user, group)| {
            lchown(&self.work, Some(user), Some(group))
        })
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        ledger::remove_flat(&self.work);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_gets_its_name_last_and_leaves_nothing_when_it_is_given_up() {
        let home = std::env::temp_dir().join(format!("tierwise-output-{}", std::process::id()));
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(home.join("run"))
            .unwrap();
        // SAFETY: no other test of this crate reads or writes this variable.
        unsafe { std::env::set_var("TIERWISE_RUN_DIR", home.join("run")) };
        let begin = || Output::begin(&home.join("out"), "tierwise-record-1").unwrap();
        let shown = |folder: &Path| fs::read_dir(folder).unwrap().count();
        let output = begin();
        fs::write(output.path().join("table"), "x").unwrap();
        assert_eq!(
            (output.size_bytes(), shown(&home), shown(&home.join("run"))),
            (1, 2, 1)
        );
        drop(output);
        assert_eq!((shown(&home), shown(&home.join("run"))), (1, 0));
        let output = begin();
        fs::write(output.path().join("table"), "x").unwrap();
        output.keep().unwrap();
        assert_eq!((shown(&home.join("out")), shown(&home.join("run"))), (1, 0));
        let again = Output::begin(&home.join("out"), "tierwise-record-2")
            .err()
            .unwrap();
        assert!(again.message.ends_with("is not empty"));
        fs::remove_dir_all(home).unwrap();
    }
}
