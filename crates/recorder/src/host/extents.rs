//! Location of a file's blocks on its device, from the file system (ioctl `FS_IOC_FIEMAP`).

use std::collections::HashMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tierwise_recording::SECTOR_BYTES;

use crate::timeline::Extent;

const FS_IOC_FIEMAP: u32 = 0xC020_660B;
const AT_ONCE: usize = 256;
const LAST: u32 = 0x1;
/// Unknown, delayed allocation, encoded, or inline data: no location of its own.
const UNPLACED: u32 = 0x2 | 0x4 | 0x8 | 0x200;
/// Time after the last write within which the kernel has allocated all blocks of a file.
const PLACED_WITHIN: Duration = Duration::from_secs(60);

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Mapped {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    more_reserved: [u32; 3],
}

#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [Mapped; AT_ONCE],
}

/// Device, inode, size and time of the last change.
type State = (u64, u64, u64, i64, i64);

/// Known extents by file; a file not written since its last query is not queried again.
#[derive(Default)]
pub struct KnownExtents {
    placed: HashMap<PathBuf, (State, Vec<Extent>)>,
}

impl KnownExtents {
    /// Extents of a file with this current status on the device with this index.
    pub fn of(&mut self, path: &Path, status: &Metadata, device: u32) -> Vec<Extent> {
        let state = (
            status.dev(),
            status.ino(),
            status.size(),
            status.mtime(),
            status.mtime_nsec(),
        );
        if let Some((known, extents)) = self.placed.get(path)
            && *known == state
        {
            return extents.clone();
        }
        let extents = extents_of(path, device);
        let changed = status.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        if changed.elapsed().is_ok_and(|passed| passed > PLACED_WITHIN) {
            self.placed
                .insert(path.to_owned(), (state, extents.clone()));
        }
        extents
    }
}

/// Extents of a file in order of their offsets; empty where the file system reports none.
///
/// Dirty pages without a location are left out; they are not flushed for this.
#[must_use]
pub fn extents_of(path: &Path, device: u32) -> Vec<Extent> {
    let mut options = OpenOptions::new();
    let flags = libc::O_NONBLOCK | libc::O_NOATIME;
    let opened = options.read(true).custom_flags(flags).open(path);
    let asked = opened.and_then(|file| ask(&file));
    let placed = asked.unwrap_or_default().into_iter();
    placed
        .map(|one| Extent {
            device,
            sector: one.physical / SECTOR_BYTES,
            sectors: one.length / SECTOR_BYTES,
            offset_bytes: one.logical,
        })
        .collect()
}

fn ask(file: &File) -> io::Result<Vec<Mapped>> {
    let (mut found, mut start) = (Vec::new(), 0);
    loop {
        let mut request = Box::new(Request {
            start,
            length: u64::MAX - start,
            flags: 0,
            mapped: 0,
            room: AT_ONCE as u32,
            reserved: 0,
            extents: [Mapped::default(); AT_ONCE],
        });
        // SAFETY: the kernel writes at most `room` extents into the live structure, which has room for them.
        let refused =
            unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut *request) };
        if refused != 0 {
            return Err(io::Error::last_os_error());
        }
        let mapped = &request.extents[..(request.mapped as usize).min(AT_ONCE)];
        found.extend(mapped.iter().filter(|one| one.flags & UNPLACED == 0));
        match mapped.last() {
            Some(last) if mapped.len() == AT_ONCE && last.flags & LAST == 0 => {
                start = last.logical + last.length;
            }
            _ => return Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn extents_cover_the_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[1; 300_000]).unwrap();
        file.as_file().sync_all().unwrap();
        let path = file.into_temp_path();
        let extents = extents_of(&path, 3);
        if extents.is_empty() {
            return; // This file system tells no extents.
        }
        let sectors: u64 = extents.iter().map(|one| one.sectors).sum();
        assert!(sectors * SECTOR_BYTES >= 300_000);
        assert_eq!((extents[0].device, extents[0].offset_bytes), (3, 0));
        std::fs::remove_file(&path).unwrap();
        assert!(extents_of(&path, 3).is_empty());
    }
}
