//! Directories by descriptor, so that no other user of the machine can turn an output elsewhere.
//!
//! It has the rules of `model/output_files.py`: each directory of a path must belong to root or the caller, and others
//! must not be able to rename what is in it. Under `sudo`, the user who called it counts as the caller; files are
//! reached by descriptors all the same, since such a user may have no other right of root.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, readlinkat, renameat, unlinkat};
use rustix::process::geteuid;

use crate::UserError;
use crate::host::paths::{MOST_LINKS, directory_entries, reversed_path_names};

const STICKY: u32 = 0o1000;
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
const WALKED: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW);
const LISTED: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW);
const FIX: &str = "name a directory of root's, to which nobody else may write";

#[derive(Debug)]
pub struct TrustedDirectory(File);

/// User and group who called `sudo`.
pub fn sudo_caller() -> Option<(u32, u32)> {
    let id = |name| std::env::var(name).ok()?.parse().ok();
    id("SUDO_UID").zip(id("SUDO_GID"))
}

impl TrustedDirectory {
    pub fn open_any(path: &Path) -> io::Result<Self> {
        Self::open(CWD, path.as_os_str(), OFlags::PATH | OFlags::DIRECTORY)
    }

    /// Opens a directory of the caller's by an absolute path; a missing one at its end is made with `mode`.
    ///
    /// # Errors
    /// If another user owns it or one above it, or can rename what is in it.
    pub fn open_own(path: &Path, mode: u32) -> Result<Self, UserError> {
        let failed = |walked: &Path, error: io::Error| UserError::at(walked, error, FIX);
        let root = || Self::open(CWD, OsStr::new("/"), WALKED);
        let (mut walked, mut links) = (PathBuf::from("/"), 0);
        let mut directory = root().map_err(|error| failed(&walked, error))?;
        let mut left = reversed_path_names(path);
        directory.require_own(&walked)?;
        while let Some(name) = left.pop() {
            let below = walked.join(&name);
            let opened = directory.child(&name, WALKED);
            let next = match opened {
                Err(error) if error.raw_os_error() == Some(libc::ENOTDIR) => {
                    let target = directory.link(&name);
                    let target = target.map_err(|error| failed(&below, error))?;
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(failed(&below, io::Error::from_raw_os_error(libc::ELOOP)));
                    }
                    left.extend(reversed_path_names(&target));
                    if target.is_absolute() {
                        walked = PathBuf::from("/");
                        directory = root().map_err(|error| failed(&walked, error))?;
                    }
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound && mode != 0 => {
                    directory.make(&name, mode)
                }
                opened => opened,
            };
            directory = next.map_err(|error| failed(&below, error))?;
            walked = below;
            directory.require_own(&walked)?;
        }
        Ok(directory)
    }

    pub fn make(&self, name: &OsStr, mode: u32) -> io::Result<Self> {
        mkdirat(&self.0, name, Mode::from_raw_mode(mode & 0o700))?;
        let made = self.child(name, LISTED)?;
        if made.0.metadata()?.uid() != geteuid().as_raw() {
            return Err(io::Error::other("was replaced by another user"));
        }
        made.0.set_permissions(Permissions::from_mode(mode))?;
        Ok(made)
    }

    /// Opens a directory in this one that can be listed, never through a link.
    pub fn listed(&self, name: &OsStr) -> io::Result<Self> {
        self.child(name, LISTED)
    }

    /// A path in this process that leads here even after somebody renamed the directory.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// The path that it has now.
    pub fn named(&self) -> io::Result<PathBuf> {
        fs::read_link(self.path())
    }

    /// Owner, mode and number of the directory itself.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata()
    }

    pub fn is_at(&self, parent: &Self, name: &OsStr) -> bool {
        let number = |directory: &Self| {
            Some((
                directory.metadata().ok()?.dev(),
                directory.metadata().ok()?.ino(),
            ))
        };
        let there = parent.child(name, WALKED).ok();
        number(self).is_some() && number(self) == there.and_then(|there| number(&there))
    }

    /// Gives an entry another name in this directory; an empty directory of that name is replaced.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.0, from, &self.0, to)?)
    }

    pub fn give(&self, owner: (u32, u32)) -> io::Result<()> {
        for entry in fs::read_dir(self.path())? {
            let file = self.child(&entry?.file_name(), OFlags::NOFOLLOW)?;
            fchown(&file.0, Some(owner.0), Some(owner.1))?;
        }
        fchown(&self.0, Some(owner.0), Some(owner.1))
    }

    /// Removes a directory in this one with its files; one that holds a directory or a mount stays.
    pub fn remove_flat(&self, name: &OsStr) {
        let Ok(below) = self.listed(name) else {
            return;
        };
        for entry in directory_entries(below.path()) {
            let _ = unlinkat(&below.0, entry.file_name(), AtFlags::empty());
        }
        let _ = unlinkat(&self.0, name, AtFlags::REMOVEDIR);
    }

    fn child(&self, name: &OsStr, flags: OFlags) -> io::Result<Self> {
        Self::open(&self.0, name, flags)
    }

    fn open(parent: impl AsFd, name: &OsStr, flags: OFlags) -> io::Result<Self> {
        let opened = openat(parent, name, flags | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self(opened.into()))
    }

    /// Target of a link of root's or the caller's.
    fn link(&self, name: &OsStr) -> io::Result<PathBuf> {
        let link = self.child(name, OFlags::PATH | OFlags::NOFOLLOW)?;
        if !is_caller_or_root(link.0.metadata()?.uid()) {
            return Err(io::Error::other("is a link of another user"));
        }
        // The kernel says ENOENT of a descriptor that is no link.
        let target = readlinkat(&link.0, c"", Vec::new());
        let target = target.map_err(|_| io::ErrorKind::NotADirectory)?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    /// Refuses a directory that another user owns, or in which he can rename files.
    pub fn require_own(&self, path: &Path) -> Result<(), UserError> {
        let found = self.metadata();
        let found = found.map_err(|error| UserError::at(path, error, FIX))?;
        if !is_caller_or_root(found.uid()) {
            let problem = format!("belongs to user {}", found.uid());
            return Err(UserError::at(path, problem, FIX));
        }
        // A group of the owner's number is his private one.
        let by_group = found.mode() & GROUP_WRITES != 0 && found.gid() != found.uid();
        if found.mode() & STICKY == 0 && (by_group || found.mode() & OTHERS_WRITE != 0) {
            return Err(UserError::at(path, "can be written by others", FIX));
        }
        Ok(())
    }
}

/// Whether a user is root, the caller, or who called `sudo`.
fn is_caller_or_root(user: u32) -> bool {
    let own = geteuid().as_raw();
    user == 0 || user == own || own == 0 && sudo_caller().is_some_and(|(sudo, _)| sudo == user)
}
