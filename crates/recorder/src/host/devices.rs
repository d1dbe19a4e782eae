//! Block devices that hold recorded files, as a recording describes them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use tierwise_recording::{ChainLink, Device, Role};

use crate::host::block_layer::{
    BackingDevices, BlockLayer, EmulatedPartition, MappedSectorRange, device_name,
    sysfs_device_number, sysfs_number, whole_disk,
};
use crate::host::control_groups::IoLimit;
use crate::host::paths::{self, Mount};
use crate::host::processes::file_text;
use crate::timeline::DeviceRange;

const NEVER_WRITTEN: [&str; 3] = ["squashfs", "iso9660", "erofs"];
/// File systems whose extents are their own addresses, not sectors of a device, or move with each write.
const WITHOUT_PLACES: [&str; 2] = ["btrfs", "f2fs"];

/// The block device of a file system: a disk, a partition, a volume, or several devices as one.
pub struct BlockDevice {
    described: Device,
    /// Physical devices below it.
    disks: BTreeSet<String>,
    stretches: Vec<MappedSectorRange>,
    roles: BTreeSet<Role>,
    /// Process that serves the emulated disk that it is.
    server_pid: Option<i32>,
}

impl BlockDevice {
    /// As `about.json` has it, without the roles and the devices that share its disks.
    pub fn described(&self) -> &Device {
        &self.described
    }

    /// Its sectors on the devices that block events name.
    pub fn stretches(&self) -> &[MappedSectorRange] {
        &self.stretches
    }

    /// Whether its file system reports the location of a file on it.
    pub fn tells_places(&self) -> bool {
        let chain = self.described.chain.iter();
        let mut systems = chain.take_while(|link| link.name.is_none());
        !systems.any(|link| WITHOUT_PLACES.contains(&link.kind.as_str()))
    }

    /// Kind of the device that takes its requests, if the kernel does not trace them.
    pub fn untraced(&self) -> Option<&str> {
        let silent = self.stretches.iter().filter(|stretch| !stretch.traced);
        let silent: Vec<&String> = silent.map(|stretch| &stretch.name).collect();
        if !self.stretches.is_empty() && silent.is_empty() {
            return None;
        }
        let chain = &self.described.chain;
        let is_silent = |link: &&ChainLink| link.name.iter().any(|name| silent.contains(&name));
        let link = chain.iter().find(is_silent).or(chain.first());
        link.map(|link| link.kind.as_str())
    }

    fn warning(&self) -> Option<String> {
        let roles = role_names_text(&self.roles);
        if let Some(kind) = self.untraced() {
            return Some(format!(
                "requests for {roles} are not recorded: the kernel tells none to {kind}, and what is below it has \
                 other sectors"
            ));
        }
        let kind = &self.described.chain.first()?.kind;
        (!self.tells_places()).then(|| {
            format!(
                "requests for {roles} may be counted for wrong files: {kind} does not tell where a file lies"
            )
        })
    }
}

/// Devices in the order in which they were found.
pub struct DiscoveredDevices {
    /// Each once.
    pub known: Vec<BlockDevice>,
    /// Roles of files without a block device, by file system.
    without: BTreeMap<String, BTreeSet<Role>>,
    /// The process whose mounts count; this one if none is given.
    pid: Option<i32>,
    layer: BlockLayer,
    /// By number: index and file system.
    by_number: HashMap<u64, (Option<u32>, String)>,
}

impl DiscoveredDevices {
    /// None yet, of those that the process sees; this process if none is given.
    pub fn new(pid: Option<i32>, layer: BlockLayer) -> Self {
        Self {
            known: Vec::new(),
            without: BTreeMap::new(),
            pid,
            layer,
            by_number: HashMap::new(),
        }
    }

    /// Every device that is mounted where the process sees it; this process if none is given.
    pub fn mounted(pid: Option<i32>, emulated: Vec<EmulatedPartition>) -> Self {
        let mut devices = Self::new(pid, BlockLayer::with_emulated(emulated));
        for mount in paths::list_mounts(pid) {
            if !NEVER_WRITTEN.contains(&mount.file_system.as_str()) {
                let (major, minor) = mount.device;
                devices.meet(libc::makedev(major, minor), Some(&mount));
            }
        }
        devices
    }

    /// Index of the device with this `st_dev`, on which a file of this role lies at a path; none if no block
    /// device backs it.
    pub fn index_of(&mut self, number: u64, path: &Path, role: Option<Role>) -> Option<u32> {
        if !self.by_number.contains_key(&number) {
            let mount = paths::mount_holding_path(path, self.pid).ok()?;
            let index = self.meet(number, mount.as_ref());
            let file_system = mount.map_or("unknown".to_owned(), |mount| mount.file_system);
            self.by_number.insert(number, (index, file_system));
        }
        let (index, file_system) = self.by_number.get(&number)?;
        if let Some(role) = role {
            let roles = match index {
                Some(index) => &mut self.known[*index as usize].roles,
                None => self.without.entry(file_system.clone()).or_default(),
            };
            roles.insert(role);
        }
        *index
    }

    /// Sectors of the disks that block events name, with their devices.
    pub fn ranges(&self) -> Vec<DeviceRange> {
        let mut ranges = Vec::new();
        for (known, device) in self.known.iter().zip(0..) {
            ranges.extend(known.stretches.iter().map(|stretch| DeviceRange {
                number: stretch.number,
                first_sector: stretch.first_sector,
                sectors: stretch.sectors,
                offset_sectors: stretch.offset_sectors,
                device,
            }));
        }
        ranges
    }

    /// As `about.json` has them.
    pub fn described(&self) -> Vec<Device> {
        let known = self.known.iter().zip(self.shared());
        let described = known.map(|(device, shared)| Device {
            roles: device.roles.iter().copied().collect(),
            shared,
            ..device.described.clone()
        });
        described.collect()
    }

    /// Warnings that only the recorder can give and every use of the recording must repeat; free of names.
    pub fn warnings(&self) -> Vec<String> {
        if self.used().next().is_none() {
            return vec!["no file of the database lies on a block device".to_owned()];
        }
        let nowhere = self.without.iter().map(|(kind, roles)| {
            let roles = role_names_text(roles);
            format!("files of {roles} lie on {kind}, which tierwise knows no block device of")
        });
        let of_devices = self.used().filter_map(BlockDevice::warning);
        nowhere.chain(of_devices).collect()
    }

    /// Those of the limits that hold for a device of files with roles, or for one below it.
    pub fn limited<'a>(&self, limits: &'a [IoLimit]) -> Vec<&'a IoLimit> {
        let links = self.used().flat_map(|device| &device.described.chain);
        let names = links.filter_map(|link| link.name.as_ref());
        let number =
            |name| sysfs_device_number(&Path::new("/sys/class/block").join(name).join("dev"));
        let numbers: BTreeSet<_> = names.map(number).collect();
        let limits = limits.iter();
        limits
            .filter(|limit| numbers.contains(&limit.device))
            .collect()
    }

    /// Servers of the emulated disks that hold files with roles.
    pub fn disk_servers(&self) -> Vec<i32> {
        let pids: BTreeSet<i32> = self.used().filter_map(|device| device.server_pid).collect();
        pids.into_iter().collect()
    }

    /// Devices that hold files with roles.
    fn used(&self) -> impl Iterator<Item = &BlockDevice> {
        self.known.iter().filter(|device| !device.roles.is_empty())
    }

    /// A number for each device; devices that share a physical device have the same number.
    fn shared(&self) -> Vec<u32> {
        let mut groups: Vec<usize> = (0..self.known.len()).collect();
        for (at, device) in self.known.iter().enumerate() {
            for other in 0..at {
                if !device.disks.is_disjoint(&self.known[other].disks) {
                    let (joined, group) = (groups[at], groups[other]);
                    for other in groups.iter_mut().filter(|other| **other == joined) {
                        *other = group;
                    }
                }
            }
        }
        let mut met: Vec<usize> = Vec::new();
        let numbers = groups.iter().map(|group| {
            let known = met.iter().position(|other| other == group);
            known.unwrap_or_else(|| {
                met.push(*group);
                met.len() - 1
            }) as u32
        });
        numbers.collect()
    }

    fn meet(&mut self, number: u64, mount: Option<&Mount>) -> Option<u32> {
        let base = self.layer.under(number, mount);
        let name = device_name(base.devices.first()?);
        let mut known = self.known.iter();
        let known = known.position(|device| device.described.name == name);
        let index = known.unwrap_or_else(|| {
            let device = self.describe(&base, mount);
            self.known.push(device);
            self.known.len() - 1
        });
        Some(index as u32)
    }

    fn describe(&self, base: &BackingDevices, mount: Option<&Mount>) -> BlockDevice {
        let first = &base.devices[0];
        let stretches = match base.devices.len() {
            1 => self.layer.stretches(first),
            _ => Vec::new(),
        };
        let lowest = stretches.first();
        let emulated = lowest.and_then(|lowest| self.layer.emulated(&lowest.name));
        let (major, minor) = sysfs_device_number(&first.join("dev"));
        let cache = file_text(whole_disk(first).join("queue/write_cache"));
        let devices = base.devices.iter();
        let sizes = devices.map(|device| sysfs_number(&device.join("size")));
        let described = Device {
            name: device_name(first),
            major,
            minor,
            mount: mount.map(|mount| mount.point.to_string_lossy().into_owned()),
            first_sector: lowest.map_or(0, |lowest| lowest.first_sector)
                + emulated.map_or(0, |emulated| emulated.first_sector),
            sectors: sizes.sum(),
            profile: emulated.map(|emulated| emulated.profile.clone()),
            path_us: emulated.and_then(|emulated| emulated.path_us),
            path_added_us: emulated
                .map_or_else(Vec::new, |emulated| emulated.path_added_us.clone()),
            write_cache: cache == "write back",
            chain: self.layer.chain(base),
            ..Device::default()
        };
        let disks = base.devices.iter();
        BlockDevice {
            described,
            disks: disks.flat_map(|device| self.layer.disks(device)).collect(),
            server_pid: emulated.and_then(|emulated| emulated.server_pid),
            stretches,
            roles: BTreeSet::new(),
        }
    }
}

fn role_names_text(roles: &BTreeSet<Role>) -> String {
    let names: Vec<_> = roles.iter().map(|role| role.name()).collect();
    names.join(", ")
}
