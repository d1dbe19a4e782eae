//! Block devices that are built on others, read from sysfs: volumes, encryption, arrays, partitions, emulated disks.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use itertools::Itertools;
use serde::Deserialize;
use tierwise_recording::ChainLink;

use crate::host::paths::{Mount, directory_entries, mount_holding_path};
use crate::host::processes::file_text;

/// Index of the device field in a device-mapper table line, for targets that keep the order of sectors.
const WHERE_IN_TABLE: [(&str, usize); 2] = [("linear", 3), ("crypt", 6)];
const DEEPEST: u32 = 16;
/// File systems on block devices whose files do not have the number of one. Any other's source is only a name.
const HAVE_NO_NUMBER: [&str; 2] = ["bcachefs", "btrfs"];

/// A contiguous range of a device's sectors, mapped to the device that block events name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedSectorRange {
    pub name: String,
    /// Its number in block events, `(major << 20) | minor`.
    pub number: u32,
    pub first_sector: u64,
    pub sectors: u64,
    /// Offset of the range on the mapped device.
    pub offset_sectors: u64,
    /// Whether the kernel traces requests to it; false for a device that only passes them on in parts.
    pub traced: bool,
}

/// File systems and devices that hold a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackingDevices {
    /// An overlay, then its upper directory's; empty for a raw device or an unknown file system.
    pub file_systems: Vec<String>,
    /// Several for btrfs; none for memory and network file systems.
    pub devices: Vec<PathBuf>,
}

/// A block device that is a partition of an emulated disk; sysfs does not tell.
#[derive(Clone, Debug, Deserialize)]
pub struct EmulatedPartition {
    /// Name of the block device.
    pub device: String,
    /// Name of the emulated disk.
    pub disk: String,
    /// First sector of the partition on the disk.
    pub first_sector: u64,
    /// Profile of the disk, as TOML.
    pub profile: String,
    /// Latency of the path to the disk that its server compensates, in microseconds.
    #[serde(default)]
    pub path_us: Option<f64>,
    /// Microseconds by which the path is longer with more requests outstanding, by their number.
    #[serde(default)]
    pub path_added_us: Vec<(u32, f64)>,
    /// Process that serves the disk.
    pub server_pid: Option<i32>,
}

/// The block devices of a machine. A device is identified by its sysfs folder.
pub struct BlockLayer {
    pub(super) sys: PathBuf,
    pub(super) dm_table: fn(&str) -> Option<String>,
    pub(super) emulated: Vec<EmulatedPartition>,
}

/// Lines of the device-mapper table of a device by its number, `MAJOR:MINOR`.
fn device_mapper_table(number: &str) -> Option<String> {
    let (major, minor) = number.split_once(':')?;
    // Root runs no program that the caller's PATH names.
    let program = ["/usr/sbin/dmsetup", "/sbin/dmsetup"]
        .into_iter()
        .find(|path| Path::new(path).exists())?;
    let output = Command::new(program)
        .args(["table", "--major", major, "--minor", minor])
        .env_clear()
        .env("LC_ALL", "C")
        .current_dir("/")
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

impl BlockLayer {
    /// Of this machine, with the emulated disks that it has.
    pub fn with_emulated(emulated: Vec<EmulatedPartition>) -> Self {
        Self {
            sys: PathBuf::from("/sys"),
            dm_table: device_mapper_table,
            emulated,
        }
    }

    /// The partition of an emulated disk that a device of this name is.
    pub fn emulated(&self, name: &str) -> Option<&EmulatedPartition> {
        let mut partitions = self.emulated.iter();
        partitions.find(|partition| partition.device == name)
    }

    /// Kind and label of a device.
    fn kind_of(&self, folder: &Path) -> (String, Option<String>) {
        let name = device_name(folder);
        let label =
            |file: &str| Some(file_text(folder.join(file))).filter(|label| !label.is_empty());
        let (kind, label) = if let Some(emulated) = self.emulated(&name) {
            ("emulated disk", Some(emulated.disk.clone()))
        } else if folder.join("partition").exists() {
            ("partition", None)
        } else if folder.join("dm").is_dir() {
            let uuid = file_text(folder.join("dm/uuid"));
            let kinds = DM_KINDS.iter().find(|(start, _)| uuid.starts_with(start));
            let kind = kinds.map_or("device-mapper", |(_, kind)| kind);
            (kind, label("dm/name"))
        } else if folder.join("md").is_dir() {
            return (format!("md {}", file_text(folder.join("md/level"))), None);
        } else if folder.join("loop").is_dir() {
            ("loop", Some(file_text(folder.join("loop/backing_file"))))
        } else if name.starts_with("zram") || name.starts_with("ram") {
            ("memory", label("device/model"))
        } else {
            ("disk", label("device/model"))
        };
        (kind.to_owned(), label)
    }

    /// Physical devices below a device. A loop device counts as physical: its requests are its own. Partitions of an
    /// emulated disk share one.
    pub fn disks(&self, folder: &Path) -> BTreeSet<String> {
        let below = devices_below(folder);
        if !below.is_empty() {
            return below.iter().flat_map(|device| self.disks(device)).collect();
        }
        let name = device_name(folder);
        BTreeSet::from([match self.emulated(&name) {
            Some(emulated) => format!("emulated {}", emulated.disk),
            None => name,
        }])
    }

    fn folder(&self, (major, minor): (u32, u32)) -> Option<PathBuf> {
        fs::canonicalize(self.sys.join(format!("dev/block/{major}:{minor}"))).ok()
    }

    /// File systems and devices that hold a file with this `st_dev`. On btrfs and overlay, that is not the number of a
    /// device: the mount tells it.
    pub fn under(&self, number: u64, mount: Option<&Mount>) -> BackingDevices {
        let file_system = mount.map(|mount| mount.file_system.clone());
        if let Some(upper) = mount.and_then(Mount::upper) {
            let seen = mount.is_some_and(|mount| mount.shows(&upper));
            let below = match seen {
                true => self.under_path(&upper),
                false => BackingDevices::default(),
            };
            let systems = file_system.into_iter().chain(below.file_systems);
            return BackingDevices {
                file_systems: systems.collect(),
                devices: below.devices,
            };
        }
        let source = match major_minor_numbers(number) {
            (0, _) => mount
                .filter(|mount| HAVE_NO_NUMBER.contains(&mount.file_system.as_str()))
                .and_then(|mount| device_number(&mount.source)),
            known => Some(known),
        };
        BackingDevices {
            file_systems: file_system.into_iter().collect(),
            devices: source
                .and_then(|source| self.folder(source))
                .map_or_else(Vec::new, |folder| self.members(folder)),
        }
    }

    /// All devices of the btrfs that a device belongs to; of any other, itself.
    fn members(&self, folder: PathBuf) -> Vec<PathBuf> {
        let all = directory_entries(self.sys.join("fs/btrfs"));
        let mut all = all.map(|folder| link_targets_in(&folder.path().join("devices")));
        let with = all.find(|members| members.contains(&folder));
        with.unwrap_or_else(|| vec![folder])
    }

    /// File systems and devices that hold a path, as this process sees it; empty if it is missing.
    pub fn under_path(&self, path: &Path) -> BackingDevices {
        let found =
            fs::metadata(path).and_then(|found| Ok((found.dev(), mount_holding_path(path, None)?)));
        let found = found.map(|(number, mount)| self.under(number, mount.as_ref()));
        found.unwrap_or_default()
    }

    /// File systems and devices, each before those below it.
    pub fn chain(&self, base: &BackingDevices) -> Vec<ChainLink> {
        let systems = base.file_systems.iter().zip(0..);
        let systems = systems.map(|(kind, depth)| ChainLink {
            depth,
            kind: kind.clone(),
            ..ChainLink::default()
        });
        let mut links: Vec<_> = systems.collect();
        let depth = links.len() as u32;
        for device in &base.devices {
            self.add_links(device, depth, &mut links);
        }
        links
    }

    fn add_links(&self, folder: &Path, depth: u32, links: &mut Vec<ChainLink>) {
        let (kind, label) = self.kind_of(folder);
        let below_loop = (kind == "loop" && depth < DEEPEST).then(|| label.clone());
        links.push(ChainLink {
            depth,
            name: Some(device_name(folder)),
            sectors: Some(sysfs_number(&folder.join("size"))),
            rotational: (kind == "disk").then(|| file_text(folder.join("queue/rotational")) == "1"),
            kind,
            label,
        });
        for device in devices_below(folder) {
            self.add_links(&device, depth + 1, links);
        }
        if let Some(file) = below_loop {
            let base = self.under_path(Path::new(file.as_deref().unwrap_or("/")));
            links.extend(self.chain(&base).into_iter().map(|link| ChainLink {
                depth: link.depth + depth + 1,
                ..link
            }));
        }
    }

    /// Maps sectors of a device to the lowest devices below it that keep their order.
    pub fn stretches(&self, folder: &Path) -> Vec<MappedSectorRange> {
        let whole = (0, sysfs_number(&folder.join("size")));
        self.stretches_of(folder, whole, 0)
    }

    fn stretches_of(
        &self,
        folder: &Path,
        (first, count): (u64, u64),
        offset: u64,
    ) -> Vec<MappedSectorRange> {
        if folder.join("partition").exists() {
            let start = sysfs_number(&folder.join("start"));
            return self.stretches_of(&whole_disk(folder), (first + start, count), offset);
        }
        let Some(pieces) = self.pieces(folder) else {
            let (major, minor) = sysfs_device_number(&folder.join("dev"));
            return vec![MappedSectorRange {
                name: device_name(folder),
                number: major << 20 | minor,
                first_sector: first,
                sectors: count,
                offset_sectors: offset,
                traced: folder.join("mq").is_dir(),
            }];
        };
        let mut found = Vec::new();
        for (start, length, device, place) in pieces {
            let (begin, end) = (first.max(start), (first + count).min(start + length));
            if begin < end {
                let part = (place + begin - start, end - begin);
                found.extend(self.stretches_of(&device, part, offset + begin - first));
            }
        }
        found
    }

    /// Start, length, device and first sector on it, for each piece; none if sectors change order.
    fn pieces(&self, folder: &Path) -> Option<Vec<(u64, u64, PathBuf, u64)>> {
        if !folder.join("dm").is_dir() {
            return None;
        }
        let table = (self.dm_table)(&file_text(folder.join("dev")))?;
        let piece = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let mut targets = WHERE_IN_TABLE.iter();
            let &(_, at) = targets.find(|(target, _)| words.get(2) == Some(target))?;
            let (major, minor) = words.get(at)?.split_once(':')?;
            let device = self.folder((major.parse().ok()?, minor.parse().ok()?))?;
            let number = |at: usize| words.get(at)?.parse().ok();
            Some((number(0)?, number(1)?, device, number(at + 1)?))
        };
        table.lines().map(piece).collect()
    }
}

/// Kind by the prefix of `dm/uuid`.
const DM_KINDS: [(&str, &str); 4] = [
    ("LVM-", "LVM volume"),
    ("CRYPT-", "dm-crypt"),
    ("mpath-", "multipath"),
    ("part", "partition"),
];

/// Devices directly below a device, in order.
fn devices_below(folder: &Path) -> Vec<PathBuf> {
    let whole = whole_disk(folder);
    if whole != folder {
        return vec![whole];
    }
    link_targets_in(&folder.join("slaves"))
}

/// The disk of a partition; a disk is its own. Request queues belong to disks.
pub fn whole_disk(folder: &Path) -> PathBuf {
    match folder.parent() {
        Some(disk) if folder.join("partition").exists() => disk.to_owned(),
        _ => folder.to_owned(),
    }
}

pub fn device_name(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The number in a sysfs file; 0 if there is none.
pub fn sysfs_number(file: &Path) -> u64 {
    file_text(file).parse().unwrap_or(0)
}

/// The number of a device in a sysfs file.
pub fn sysfs_device_number(file: &Path) -> (u32, u32) {
    let text = file_text(file);
    let (major, minor) = text.split_once(':').unwrap_or_default();
    (major.parse().unwrap_or(0), minor.parse().unwrap_or(0))
}

/// Major and minor number of an `st_dev`.
fn major_minor_numbers(number: u64) -> (u32, u32) {
    (libc::major(number), libc::minor(number))
}

/// Number of the device that a special file stands for.
fn device_number(source: &str) -> Option<(u32, u32)> {
    let is_file = source.starts_with("/dev/");
    let found = is_file.then(|| fs::metadata(source).ok())??;
    (found.rdev() != 0).then(|| major_minor_numbers(found.rdev()))
}

/// What the links in a directory lead to, in order.
fn link_targets_in(directory: &Path) -> Vec<PathBuf> {
    let found =
        directory_entries(directory).filter_map(|entry| fs::canonicalize(entry.path()).ok());
    found.sorted().collect()
}
