//! Facts about a recorded file: its role, device, size, and block locations.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tierwise_recording::{Role, Rules, SECTOR_BYTES};

use crate::host::devices::DiscoveredDevices;
use crate::host::paths::{DirectorySizes, directory_sizes, file_beginning, path_within_root};
use crate::timeline::{FileExtent, FileFacts};

/// Roles of files by their paths, given by whoever knows them better than rules do.
pub type RoleLookup = Box<dyn Fn(&str) -> Option<Role> + Send>;

/// Answers the recorder's questions about files, by their paths as the recorded processes see them.
pub struct FileDescriber {
    pub devices: DiscoveredDevices,
    pub rules: Rules,
    /// In place of the rules' own roles.
    role_of: Option<RoleLookup>,
    /// Root of the recorded processes' file system, `/proc/PID/root` for a container's.
    pub root: PathBuf,
    /// Those that hold files with roles that were asked for.
    directories: BTreeSet<PathBuf>,
    extents: CachedFileExtents,
}

impl FileDescriber {
    /// By these rules, or by roles in place of theirs.
    pub fn new(
        devices: DiscoveredDevices,
        rules: Rules,
        role_of: Option<RoleLookup>,
        root: PathBuf,
    ) -> Self {
        Self {
            devices,
            rules,
            role_of,
            root,
            directories: BTreeSet::new(),
            extents: CachedFileExtents::default(),
        }
    }

    /// Sizes in the data directory of a server; none if it is gone, or not known. Links in it lead to tablespaces or a
    /// log elsewhere; settings also lead to files elsewhere, such as binary logs, most of which are not open.
    pub fn data_sizes(&self, data_directory: &Path) -> Option<DirectorySizes> {
        let directory = path_within_root(&self.root, data_directory);
        directory_sizes(&directory, &self.directories, &self.root, |path| {
            self.by_path(path)
        })
    }

    /// The data directory of a live server, as it sees it.
    pub fn data_directory(&self, pid: i32) -> Option<PathBuf> {
        data_directory(pid, &self.rules)
    }

    /// Current facts of these files: later they may be deleted, or other files may have their names.
    pub fn snapshot(&mut self, paths: &BTreeSet<&str>) -> HashMap<String, FileFacts> {
        let paths = paths.iter();
        paths
            .map(|path| ((*path).to_owned(), self.of(path)))
            .collect()
    }

    /// Facts of one file; empty for a socket or any other file that is not regular.
    pub fn of(&mut self, seen: &str) -> FileFacts {
        let place = path_within_root(&self.root, Path::new(seen));
        let status = fs::metadata(&place).ok();
        let other = status.as_ref().is_some_and(|status| !status.is_file());
        if !seen.starts_with('/') || other {
            return FileFacts::default();
        }
        let role = self.role_of(&place, seen);
        let by_rules = self.role_of.is_none();
        let role = role.or_else(|| by_rules.then(|| role_of_content(&self.rules, &place))?);
        if let Some(directory) = place
            .parent()
            .filter(|_| role.is_some() && status.is_some())
        {
            self.directories.insert(directory.to_owned());
        }
        let device = self.device(&place, status.as_ref(), role);
        let tells = |device: u32| self.devices.known[device as usize].tells_places();
        let extents = match (status.as_ref(), device) {
            (Some(status), Some(device)) if role.is_some() && tells(device) => {
                self.extents.of(&place, status, device)
            }
            _ => Vec::new(),
        };
        FileFacts {
            role,
            device,
            empty: status.as_ref().is_some_and(|status| status.len() == 0),
            size_bytes: status.map_or(0, |status| status.len()),
            extents,
        }
    }

    /// A link may lead from a directory without a role to one that was placed for a role.
    fn role_of(&self, place: &Path, seen: &str) -> Option<Role> {
        let real = place.strip_prefix(&self.root).unwrap_or(place);
        let real = format!("/{}", real.to_string_lossy().trim_start_matches('/'));
        self.by_path(&real).or_else(|| self.by_path(seen))
    }

    fn by_path(&self, path: &str) -> Option<Role> {
        match &self.role_of {
            Some(role_of) => role_of(path),
            None => self.rules.role_of(path),
        }
    }

    /// Device of the file, or of its nearest existing parent directory if it is gone.
    fn device(
        &mut self,
        place: &Path,
        status: Option<&Metadata>,
        role: Option<Role>,
    ) -> Option<u32> {
        let mut there = place;
        let mut number = status.map(Metadata::dev);
        while number.is_none() && there != self.root {
            there = there.parent()?;
            number = fs::metadata(there).ok().map(|found| found.dev());
        }
        self.devices.index_of(number?, there, role)
    }
}

/// Data directory of a server, as it sees it; none where the rules do not say where it is.
pub fn data_directory(pid: i32, rules: &Rules) -> Option<PathBuf> {
    let known = rules.works_in_data_directory;
    known.then(|| fs::read_link(format!("/proc/{pid}/cwd")).ok())?
}

/// Role of a file whose name says nothing, by its first bytes; none if the rules know no such bytes.
#[must_use]
pub fn role_of_content(rules: &Rules, place: &Path) -> Option<Role> {
    let bytes = rules.content_bytes() as u64;
    // Files of /proc and /sys, which some effect may follow from reading, have no length.
    let long =
        bytes > 0 && fs::metadata(place).is_ok_and(|file| file.is_file() && file.len() >= bytes);
    let known = long.then(|| file_beginning(place, bytes))?;
    rules.role_of_content(&known?)
}

// Location of a file's blocks on its device, from the file system (ioctl `FS_IOC_FIEMAP`).

const FS_IOC_FIEMAP: u32 = 0xC020_660B;
const AT_ONCE: usize = 256;
const LAST: u32 = 0x1;
/// Unknown, delayed allocation, encoded, or inline data: no location of its own.
const UNPLACED: u32 = 0x2 | 0x4 | 0x8 | 0x200;
/// Time after the last write within which the kernel has allocated all blocks of a file.
const PLACED_WITHIN: Duration = Duration::from_secs(60);

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    more_reserved: [u32; 3],
}

#[repr(C)]
struct FiemapRequest {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [FiemapExtent; AT_ONCE],
}

/// Device, inode, size and time of the last change.
type FileChangeState = (u64, u64, u64, i64, i64);

/// Known extents by file; a file not written since its last query is not queried again.
#[derive(Default)]
pub struct CachedFileExtents {
    placed: HashMap<PathBuf, (FileChangeState, Vec<FileExtent>)>,
}

impl CachedFileExtents {
    /// Extents of a file with this current status on the device with this index.
    pub fn of(&mut self, path: &Path, status: &Metadata, device: u32) -> Vec<FileExtent> {
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
        let extents = file_extents(path, device);
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
pub fn file_extents(path: &Path, device: u32) -> Vec<FileExtent> {
    let mut options = OpenOptions::new();
    let flags = libc::O_NONBLOCK | libc::O_NOATIME;
    let opened = options.read(true).custom_flags(flags).open(path);
    let asked = opened.and_then(|file| query_fiemap(&file));
    let placed = asked.unwrap_or_default().into_iter();
    placed
        .map(|extent| FileExtent {
            device,
            sector: extent.physical / SECTOR_BYTES,
            sectors: extent.length / SECTOR_BYTES,
            offset_bytes: extent.logical,
        })
        .collect()
}

fn query_fiemap(file: &File) -> io::Result<Vec<FiemapExtent>> {
    let (mut found, mut start) = (Vec::new(), 0);
    loop {
        let mut request = Box::new(FiemapRequest {
            start,
            length: u64::MAX - start,
            flags: 0,
            mapped: 0,
            room: AT_ONCE as u32,
            reserved: 0,
            extents: [FiemapExtent::default(); AT_ONCE],
        });
        // SAFETY: the kernel writes at most `room` extents into the live structure, which has room for them.
        let refused =
            unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut *request) };
        if refused != 0 {
            return Err(io::Error::last_os_error());
        }
        let mapped = &request.extents[..(request.mapped as usize).min(AT_ONCE)];
        found.extend(mapped.iter().filter(|extent| extent.flags & UNPLACED == 0));
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
    use std::io::Write;

    use super::*;

    #[test]
    fn facts_of_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.log");
        fs::write(&file, [1; 1000]).unwrap();
        let rules = r#"
            engine = "toy"
            source = "none"
            programs = []
            file = [{ path = '\.log$', role = "log" }]
            content = [{ offset = 1, hex = "4142", role = "data" }]
        "#;
        let rules = Rules::parse(rules, "toy").unwrap();
        let mut files = FileDescriber::new(
            DiscoveredDevices::mounted(None, Vec::new()),
            rules,
            None,
            PathBuf::from("/"),
        );
        let shown = file.to_string_lossy().into_owned();
        let here = files.of(&shown);
        assert_eq!((here.role, here.size_bytes), (Some(Role::Log), 1000));
        fs::remove_file(&file).unwrap();
        let gone = files.of(&shown);
        let expected = (Some(Role::Log), 0, here.device);
        assert_eq!((gone.role, gone.size_bytes, gone.device), expected);
        let odd = file.with_extension("odd");
        fs::write(&odd, "xAB").unwrap();
        assert_eq!(files.of(odd.to_str().unwrap()).role, Some(Role::Data));
        for path in ["socket:[1]", "/dev/null", "/tmp"] {
            assert_eq!(files.of(path), FileFacts::default());
        }
    }

    #[test]
    fn extents_cover_the_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[1; 300_000]).unwrap();
        file.as_file().sync_all().unwrap();
        let path = file.into_temp_path();
        let extents = file_extents(&path, 3);
        if extents.is_empty() {
            return; // This file system tells no extents.
        }
        let sectors: u64 = extents.iter().map(|extent| extent.sectors).sum();
        assert!(sectors * SECTOR_BYTES >= 300_000);
        assert_eq!((extents[0].device, extents[0].offset_bytes), (3, 0));
        std::fs::remove_file(&path).unwrap();
        assert!(file_extents(&path, 3).is_empty());
    }
}
