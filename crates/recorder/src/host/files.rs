//! Facts about a recorded file: its role, device, size, and block locations.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::timeline::FileFacts;
use tierwise_recording::{Role, Rules};

use crate::host::devices::Devices;
use crate::host::extents::KnownExtents;
use crate::host::paths::{TreeSizes, beginning, tree_sizes, within};

/// Roles of files by their paths, given by whoever knows them better than rules do.
pub type RoleOf = Box<dyn Fn(&str) -> Option<Role> + Send>;

/// Answers the recorder's questions about files, by their paths as the recorded processes see them.
pub struct Files {
    pub devices: Devices,
    pub rules: Rules,
    /// In place of the rules' own roles.
    role_of: Option<RoleOf>,
    /// Root of the recorded processes' file system, `/proc/PID/root` for a container's.
    root: PathBuf,
    extents: KnownExtents,
}

impl Files {
    /// By these rules, or by roles in place of theirs.
    pub fn new(devices: Devices, rules: Rules, role_of: Option<RoleOf>, root: PathBuf) -> Self {
        Self {
            devices,
            rules,
            role_of,
            root,
            extents: KnownExtents::default(),
        }
    }

    /// Sizes in the data directory of a server; none if it is gone, or not known. Links in it lead to tablespaces or a
    /// log elsewhere.
    pub fn data_sizes(&self, pid: i32) -> Option<TreeSizes> {
        let directory = within(&self.root, &data_directory(pid, &self.rules)?);
        tree_sizes(&directory, &self.root, |path| self.by_path(path))
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
        let place = within(&self.root, Path::new(seen));
        let status = fs::metadata(&place).ok();
        let other = status.as_ref().is_some_and(|status| !status.is_file());
        if !seen.starts_with('/') || other {
            return FileFacts::default();
        }
        let role = self.role_of(&place, seen);
        let by_rules = self.role_of.is_none();
        let role = role.or_else(|| by_rules.then(|| role_of_content(&self.rules, &place))?);
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
    let known = long.then(|| beginning(place, bytes))?;
    rules.role_of_content(&known?)
}

#[cfg(test)]
mod tests {
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
        let mut files = Files::new(
            Devices::mounted(None, Vec::new()),
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
}
