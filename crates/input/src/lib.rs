//! Files that others wrote: only a regular file is opened, without waiting, and no more is read than a limit. And the
//! error of whoever cannot use his input.
//!
//! `tierwise.model.input_files` and `tierwise.model.errors` are the same for Python.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Why something cannot be done, in one line that names the file, field or option, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserError {
    /// What is wrong.
    pub message: String,
    /// What to do about it, in the imperative.
    pub fix: String,
}

impl UserError {
    /// One with these texts.
    pub fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            fix: fix.into(),
        }
    }

    /// One about a file or folder.
    pub fn at(path: &Path, error: impl fmt::Display, fix: &str) -> Self {
        Self::new(format!("{}: {error}", path.display()), fix)
    }
}

impl fmt::Display for UserError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for UserError {}

/// Whether the last part of a path may be a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// A user named the file: the link is his.
    Follow,
    /// The file lies in a folder of somebody else.
    Refuse,
}

/// Opens a regular file for reading.
///
/// # Errors
/// A pipe, a device, a socket or a directory; a link that is refused; or what the system says.
pub fn open(path: &Path, links: Links) -> io::Result<File> {
    let (found, flag) = match links {
        Links::Follow => (fs::metadata(path)?, 0),
        Links::Refuse => (fs::symlink_metadata(path)?, libc::O_NOFOLLOW),
    };
    // Opening a device may already do something. What lies there may change before it is opened, so it is
    // opened without waiting and looked at again.
    require_regular(&found)?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | flag)
        .open(path)?;
    require_regular(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file whole.
///
/// # Errors
/// As [`open`]; or the file has more than `most_bytes`.
pub fn read(path: &Path, links: Links, most_bytes: u64) -> io::Result<Vec<u8>> {
    let file = open(path, links)?;
    let size_bytes = file.metadata()?.len();
    if size_bytes > most_bytes {
        let problem = format!("{size_bytes} bytes, above {most_bytes}");
        return Err(io::Error::other(problem));
    }
    let mut content = Vec::with_capacity(usize::try_from(size_bytes).unwrap_or(0));
    file.take(most_bytes).read_to_end(&mut content)?;
    Ok(content)
}

fn require_regular(found: &fs::Metadata) -> io::Result<()> {
    let problem = match found.file_type() {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_symlink() => "it is a symbolic link",
        kind if kind.is_dir() => "it is a directory",
        _ => "it is no regular file",
    };
    Err(io::Error::other(problem))
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let unique = format!("tierwise-input-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(unique);
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn problem(path: &Path, links: Links) -> String {
        read(path, links, 100).unwrap_err().to_string()
    }

    #[test]
    fn only_a_regular_file_is_read() {
        let folder = Folder::new("kinds");
        let at = |name: &str| folder.0.join(name);
        let pipe = CString::new(at("pipe").as_os_str().as_bytes()).unwrap();
        // SAFETY: the path is a valid text that ends in NUL.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        let _socket = UnixListener::bind(at("socket")).unwrap();
        symlink("/dev/zero", at("device")).unwrap();
        for name in ["pipe", "socket", "device"] {
            assert_eq!(problem(&at(name), Links::Follow), "it is no regular file");
        }
        assert_eq!(problem(&folder.0, Links::Follow), "it is a directory");
    }

    #[test]
    fn a_link_is_followed_only_if_wanted() {
        let folder = Folder::new("links");
        let (file, link) = (folder.0.join("file"), folder.0.join("link"));
        fs::write(&file, "text").unwrap();
        symlink(&file, &link).unwrap();
        assert_eq!(read(&link, Links::Follow, 100).unwrap(), b"text");
        assert_eq!(problem(&link, Links::Refuse), "it is a symbolic link");
    }

    #[test]
    fn a_larger_file_is_not_read() {
        let folder = Folder::new("size");
        let file = folder.0.join("file");
        File::create(&file).unwrap().set_len(101).unwrap();
        assert_eq!(problem(&file, Links::Refuse), "101 bytes, above 100");
    }
}
