//! Paths as a process with another root has them, files behind them, and the size of directory trees.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsString;
use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use tierwise_input::Links;
use tierwise_recording::Role;

use crate::host::processes::number_after_name;

/// As the kernel has it.
pub const MOST_LINKS: u32 = 40;

/// Resolves a path as a process with that root would: the kernel resolves absolute links from ours.
#[must_use]
pub fn path_within_root(root: &Path, path: &Path) -> PathBuf {
    let mut resolved = root.to_owned();
    let mut rest = reversed_path_names(path);
    let mut followed = 0;
    while let Some(part) = rest.pop() {
        if part == ".." {
            if resolved != root {
                resolved.pop();
            }
            continue;
        }
        let place = resolved.join(&part);
        let Ok(link) = fs::read_link(&place) else {
            resolved = place;
            continue;
        };
        followed += 1;
        if followed > MOST_LINKS {
            return place;
        }
        if link.is_absolute() {
            root.clone_into(&mut resolved);
        }
        rest.extend(reversed_path_names(&link));
    }
    resolved
}

/// Entries of a directory; none of one that cannot be read.
pub fn directory_entries(directory: impl AsRef<Path>) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(directory).into_iter().flatten().flatten()
}

/// Device and number of the file that a path leads to.
pub fn file_identity(path: impl AsRef<Path>) -> io::Result<(u64, u64)> {
    let found = fs::metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// Names in a path, the last one first.
pub fn reversed_path_names(path: &Path) -> Vec<OsString> {
    let named = |part: Component<'_>| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_owned()),
        _ => None,
    };
    path.components().rev().filter_map(named).collect()
}

/// Text of a regular file of another account, at most this many bytes of it; none if there is no such file. The path is
/// as a process with that root has it.
pub fn bounded_file_text(root: &Path, path: &Path, most_bytes: u64) -> Option<String> {
    let bytes = file_beginning(&path_within_root(root, path), most_bytes)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// First bytes of a regular file, at most this many; none if there is no such file.
pub fn file_beginning(path: &Path, most_bytes: u64) -> Option<Vec<u8>> {
    let file = tierwise_input::open(path, Links::Follow).ok()?;
    let mut bytes = Vec::new();
    file.take(most_bytes).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Sizes of the files in a directory, links followed, each file once; and by role of those in directories beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectorySizes {
    pub all_bytes: u64,
    /// Of those that have a role, also beside it.
    pub role_bytes: BTreeMap<Role, u64>,
}

/// Sizes in a directory; none if it cannot be read.
///
/// Of `beside`, which hold other files of the database, such as its binary logs, only files with a role count, and none
/// of directories in them. `role_of` is asked with paths as a process with that root has them.
pub fn directory_sizes(
    directory: &Path,
    beside: &BTreeSet<PathBuf>,
    root: &Path,
    mut role_of: impl FnMut(&str) -> Option<Role>,
) -> Option<DirectorySizes> {
    fs::read_dir(directory).ok()?;
    let mut waiting = vec![directory.to_owned()];
    // A link of the server's user may lead to `/`: all of the machine is no part of the database.
    let above = directory.ancestors().skip(1).map(Path::to_owned);
    let kernels = ["proc", "sys"].map(|name| root.join(name));
    let mut seen: HashSet<_> = above.chain(kernels).flat_map(file_identity).collect();
    let mut sizes = DirectorySizes::default();
    let mut role_bytes = BTreeMap::new();
    let mut count = |place: &Path, size_bytes: u64| {
        let path = Path::new("/").join(place.strip_prefix(root).unwrap_or(place));
        if let Some(role) = role_of(&path.to_string_lossy()) {
            *role_bytes.entry(role).or_default() += size_bytes;
        }
    };
    while let Some(place) = waiting.pop() {
        let Ok(found) = fs::metadata(&place) else {
            continue;
        };
        if !seen.insert((found.dev(), found.ino())) {
            continue;
        }
        if found.is_dir() {
            waiting
                .extend(directory_entries(&place).map(|entry| followed_entry_target(&entry, root)));
        } else if found.is_file() {
            sizes.all_bytes += found.len();
            count(&place, found.len());
        }
    }
    for place in beside
        .iter()
        .flat_map(directory_entries)
        .map(|entry| entry.path())
    {
        let found = fs::symlink_metadata(&place).ok();
        if let Some(found) = found.filter(Metadata::is_file)
            && seen.insert((found.dev(), found.ino()))
        {
            count(&place, found.len());
        }
    }
    Some(DirectorySizes {
        role_bytes,
        ..sizes
    })
}

/// Target of an entry for a process with that root.
fn followed_entry_target(entry: &fs::DirEntry, root: &Path) -> PathBuf {
    let path = entry.path();
    let links = entry.file_type().is_ok_and(|kind| kind.is_symlink());
    match path.strip_prefix(root) {
        Ok(seen) if links => path_within_root(root, seen),
        _ => path,
    }
}

// The mount table of a process.

/// One line of the kernel's mount table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    id: u64,
    /// As the process sees it that reads the table.
    pub point: PathBuf,
    /// That process's root directory.
    root: PathBuf,
    pub device: (u32, u32),
    pub file_system: String,
    pub source: String,
    /// Options of the file system itself.
    options: String,
}

impl Mount {
    /// Whether an overlay shows this directory, as this process sees it, as its upper one. The mounting process may have
    /// seen another one of that name. An overlay's root has the owner and the times of its upper directory
    /// (<https://docs.kernel.org/filesystems/overlayfs.html>, "Directories").
    pub fn shows(&self, upper: &Path) -> bool {
        let inside = self.point.strip_prefix("/").unwrap_or(&self.point);
        let facts = |path: &Path| {
            let found = fs::metadata(path).ok()?;
            let owner = (found.mode(), found.uid(), found.gid());
            Some((owner, found.ctime(), found.ctime_nsec()))
        };
        facts(upper).is_some_and(|upper| facts(&self.root.join(inside)) == Some(upper))
    }

    /// Upper directory of an overlay, as the mounting process saw it.
    pub fn upper(&self) -> Option<PathBuf> {
        if self.file_system != "overlay" {
            return None;
        }
        let options = format!(",{}", self.options);
        let (_, rest) = options.split_once(",upperdir=")?;
        let (mut path, mut escaped) = (String::new(), false);
        for letter in rest.chars() {
            match letter {
                '\\' if !escaped => escaped = true,
                ',' if !escaped => break,
                _ => {
                    path.push(letter);
                    escaped = false;
                }
            }
        }
        Some(path.into())
    }

    fn parse(line: &str, root: &Path) -> Option<Self> {
        let fields: Vec<&str> = line.split(' ').collect();
        let end = fields.iter().position(|field| *field == "-")?;
        let (major, minor) = fields.get(2)?.split_once(':')?;
        Some(Self {
            id: fields.first()?.parse().ok()?,
            point: unescaped_mount_text(fields.get(4)?).into(),
            root: root.to_owned(),
            device: (major.parse().ok()?, minor.parse().ok()?),
            file_system: unescaped_mount_text(fields.get(end + 1)?),
            source: unescaped_mount_text(fields.get(end + 2)?),
            options: unescaped_mount_text(fields.get(end + 3)?),
        })
    }
}

/// All mounts that a process sees (this one if none is given), in mount order.
pub fn list_mounts(pid: Option<i32>) -> Vec<Mount> {
    let who = pid.map_or("self".to_owned(), |pid| pid.to_string());
    let table = fs::read(format!("/proc/{who}/mountinfo")).unwrap_or_default();
    let table = String::from_utf8_lossy(&table);
    let root = pid.map_or("/".into(), |pid| PathBuf::from(format!("/proc/{pid}/root")));
    let mounts = table.lines().filter_map(|line| Mount::parse(line, &root));
    mounts.collect()
}

/// The mount that holds a path, as a process sees it; none where the process does not see it.
pub fn mount_holding_path(path: &Path, pid: Option<i32>) -> io::Result<Option<Mount>> {
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_PATH).open(path)?;
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    let id = number_after_name("mnt_id:", &text);
    Ok(list_mounts(pid)
        .into_iter()
        .find(|mount| Some(mount.id) == id))
}

/// Text of the mount table, in which `\040` stands for a space.
fn unescaped_mount_text(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part
            .get(..3)
            .and_then(|code| u8::from_str_radix(code, 8).ok());
        match code {
            Some(code) => {
                plain.push(char::from(code));
                plain.push_str(&part[3..]);
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    /// A root with a folder `data/base`.
    fn root() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("data/base")).unwrap();
        folder
    }

    #[test]
    fn links_lead_where_they_lead_under_another_root() {
        let folder = root();
        let root = folder.path();
        symlink("/data", root.join("link")).unwrap();
        symlink("../../../data/file", root.join("data/up")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let found = |path: &str| path_within_root(root, Path::new(path));
        assert_eq!(found("/link/file"), root.join("data/file"));
        assert_eq!(found("/link/up"), root.join("data/file"));
        assert_eq!(found("/../../etc/passwd"), root.join("etc/passwd"));
        assert!(found("/loop").starts_with(root));
    }

    #[test]
    fn links_to_directories_above_and_to_the_kernels_add_nothing() {
        let folder = root();
        let root = folder.path();
        let data = root.join("data");
        fs::write(data.join("base/1"), [0; 1000]).unwrap();
        for (name, link) in [("other", "/"), ("proc", "/proc"), ("sys", "/sys")] {
            fs::create_dir(root.join(name)).unwrap();
            fs::write(root.join(name).join("file"), [0; 500]).unwrap();
            symlink(link, data.join(name)).unwrap();
        }
        let sizes = directory_sizes(&data, &BTreeSet::new(), root, |_| None).unwrap();
        assert_eq!(sizes.all_bytes, 1000);
    }

    #[test]
    fn a_tree_is_measured_with_what_its_links_lead_to_each_file_once() {
        let folder = root();
        let root = folder.path();
        let data = root.join("data");
        fs::create_dir(root.join("elsewhere")).unwrap();
        fs::write(data.join("base/1"), [0; 1000]).unwrap();
        fs::hard_link(data.join("base/1"), data.join("again")).unwrap();
        fs::write(root.join("elsewhere/log"), [0; 500]).unwrap();
        symlink("/elsewhere", data.join("pg_wal")).unwrap();
        symlink("/data", data.join("loop")).unwrap();
        let log = |path: &str| (path == "/elsewhere/log").then_some(Role::Log);
        let sizes = directory_sizes(&data, &BTreeSet::new(), root, log).unwrap();
        assert_eq!(sizes.all_bytes, 1500);
        assert_eq!(sizes.role_bytes, BTreeMap::from([(Role::Log, 500)]));
        let none = directory_sizes(&root.join("none"), &BTreeSet::new(), root, |_| None);
        assert_eq!(none, None);
    }

    #[test]
    fn files_with_a_role_beside_a_tree_are_measured_by_role() {
        let folder = root();
        let root = folder.path();
        let (data, beside) = (root.join("data"), root.join("binlogs"));
        fs::create_dir_all(beside.join("older")).unwrap();
        fs::write(data.join("base/1"), [0; 1000]).unwrap();
        for (name, size_bytes) in [
            ("bin.1", 300),
            ("bin.2", 20),
            ("notes", 5),
            ("older/bin.0", 7),
        ] {
            fs::write(beside.join(name), vec![0; size_bytes]).unwrap();
        }
        let role_of = |path: &str| match path {
            path if path.starts_with("/binlogs/bin.") => Some(Role::Archive),
            path => path.starts_with("/data/").then_some(Role::Data),
        };
        let beside = BTreeSet::from([beside, data.join("base"), root.join("none")]);
        let sizes = directory_sizes(&data, &beside, root, role_of).unwrap();
        assert_eq!(sizes.all_bytes, 1000);
        let expected = [(Role::Data, 1000), (Role::Archive, 320)];
        assert_eq!(sizes.role_bytes, BTreeMap::from(expected));
    }

    #[test]
    fn only_regular_files_are_read_and_only_their_beginning() {
        let folder = root();
        fs::write(folder.path().join("file"), "0123456789").unwrap();
        mknodat(
            CWD,
            folder.path().join("pipe"),
            FileType::Fifo,
            Mode::RUSR,
            0,
        )
        .unwrap();
        let read = |path: &str| bounded_file_text(folder.path(), Path::new(path), 4);
        assert_eq!(read("/file").as_deref(), Some("0123"));
        assert_eq!((read("/pipe"), read("/data")), (None, None));
        assert_eq!(file_beginning(Path::new("/dev/zero"), 4), None);
    }

    #[test]
    fn lines_are_read_with_what_the_kernel_escapes() {
        let line = r"36 35 98:0 / /mnt/my\040disk rw shared:1 - ext4 /dev/sda1 rw,errors=continue";
        let mount = Mount::parse(line, Path::new("/")).unwrap();
        assert_eq!(mount.point, Path::new("/mnt/my disk"));
        let expected = ((98, 0), "ext4");
        assert_eq!((mount.device, mount.file_system.as_str()), expected);
        assert_eq!(mount.upper(), None);
        assert_eq!(Mount::parse("36 35", Path::new("/")), None);
    }

    #[test]
    fn an_overlay_tells_its_upper_directory() {
        let line = r"1 2 0:9 / / rw - overlay overlay rw,lowerdir=/l,upperdir=/u\134,p,workdir=/w";
        let mount = Mount::parse(line, Path::new("/")).unwrap();
        assert_eq!(mount.upper(), Some("/u,p".into()));
    }

    #[test]
    fn an_overlay_shows_its_upper_directory_and_none_of_that_name_elsewhere() {
        let (inside, elsewhere) = (root(), root());
        // Two directories of one tick of the clock have the same times.
        let data = elsewhere.path().join("data");
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
        let line = "1 2 0:9 / /data rw - overlay overlay rw,upperdir=/data";
        let mount = Mount::parse(line, inside.path()).unwrap();
        assert!(mount.shows(&inside.path().join("data")));
        assert!(!mount.shows(&data));
        assert!(!mount.shows(&elsewhere.path().join("none")));
    }

    #[test]
    fn the_root_has_a_mount() {
        let found = mount_holding_path(Path::new("/"), None).unwrap();
        assert_eq!(found.unwrap().point, Path::new("/"));
    }
}
