//! Facts about one block device, by its folder in sysfs.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::host::processes::text;

/// Kind by the prefix of `dm/uuid`.
const DM_KINDS: [(&str, &str); 4] = [
    ("LVM-", "LVM volume"),
    ("CRYPT-", "dm-crypt"),
    ("mpath-", "multipath"),
    ("part", "partition"),
];

/// Devices directly below a device, in order.
pub fn below(folder: &Path) -> Vec<PathBuf> {
    let whole = whole_disk(folder);
    if whole != folder {
        return vec![whole];
    }
    links_in(&folder.join("slaves"))
}

pub fn kind(folder: &Path) -> (String, Option<String>) {
    let label = |file: &str| Some(text(folder.join(file))).filter(|label| !label.is_empty());
    if folder.join("partition").exists() {
        return ("partition".to_owned(), None);
    }
    if folder.join("dm").is_dir() {
        let uuid = text(folder.join("dm/uuid"));
        let kinds = DM_KINDS.iter().find(|(start, _)| uuid.starts_with(start));
        let kind = kinds.map_or("device-mapper", |(_, kind)| kind);
        return (kind.to_owned(), label("dm/name"));
    }
    if folder.join("md").is_dir() {
        return (format!("md {}", text(folder.join("md/level"))), None);
    }
    if folder.join("loop").is_dir() {
        return (
            "loop".to_owned(),
            Some(text(folder.join("loop/backing_file"))),
        );
    }
    let name = name_of(folder);
    let memory = name.starts_with("zram") || name.starts_with("ram");
    let kind = if memory { "memory" } else { "disk" };
    (kind.to_owned(), label("device/model"))
}

/// The disk of a partition; a disk is its own. Request queues belong to disks.
pub fn whole_disk(folder: &Path) -> PathBuf {
    match folder.parent() {
        Some(disk) if folder.join("partition").exists() => disk.to_owned(),
        _ => folder.to_owned(),
    }
}

pub fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The number in a sysfs file; 0 if there is none.
pub fn number_in(file: &Path) -> u64 {
    text(file).parse().unwrap_or(0)
}

/// The number of a device in a sysfs file.
pub fn numbers_in(file: &Path) -> (u32, u32) {
    let text = text(file);
    let (major, minor) = text.split_once(':').unwrap_or_default();
    (major.parse().unwrap_or(0), minor.parse().unwrap_or(0))
}

/// Major and minor number of an `st_dev`.
pub fn numbers_of(number: u64) -> (u32, u32) {
    (libc::major(number), libc::minor(number))
}

/// Number of the device that a special file stands for.
pub fn device_number(source: &str) -> Option<(u32, u32)> {
    let found = source
        .starts_with("/dev/")
        .then(|| fs::metadata(source).ok())??;
    (found.rdev() != 0).then(|| numbers_of(found.rdev()))
}

/// What the links in a directory lead to, in order.
pub fn links_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| fs::canonicalize(entry.path()).ok())
        .collect();
    found.sort();
    found
}
