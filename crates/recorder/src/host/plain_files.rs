//! Small files of another account, read by root: never a pipe or a device, never more than a limit.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Text of a regular file, at most this many bytes of it; none if there is no such file.
pub fn read(path: &Path, most_bytes: u64) -> Option<String> {
    beginning(path, most_bytes).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// First bytes of a regular file, at most this many; none if there is no such file.
pub fn beginning(path: &Path, most_bytes: u64) -> Option<Vec<u8>> {
    // A pipe would block without the flag.
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC)
        .open(path)
        .ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(most_bytes).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_read_and_only_their_beginning() {
        let folder = std::env::temp_dir().join(format!("tierwise-plain-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (file, pipe) = (folder.join("file"), folder.join("pipe"));
        std::fs::write(&file, "0123456789").unwrap();
        let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
        // SAFETY: the name is a live C string.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        assert_eq!(read(&file, 4).as_deref(), Some("0123"));
        assert_eq!(read(&pipe, 4), None);
        assert_eq!(read(&folder, 4), None);
        assert_eq!(read(Path::new("/dev/zero"), 4), None);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
