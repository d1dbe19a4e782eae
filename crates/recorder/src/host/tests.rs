//! Block devices as sysfs would show them, in a directory of the test's own: where their requests are, which share a disk,
//! and what is not recorded of them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tierwise_recording::Role;

use crate::host::block_layer::{BackingDevices, BlockLayer, EmulatedPartition, MappedSectorRange};
use crate::host::devices::DiscoveredDevices;
use crate::timeline::DeviceRange;

struct Sysfs(TempDir);

impl Sysfs {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("dev/block")).unwrap();
        Self(folder)
    }

    /// A device with these files, as `NAME=TEXT`.
    fn add(&self, path: &str, number: &str, files: &[&str]) -> PathBuf {
        let folder = self.0.path().join("devices").join(path);
        let own = [format!("dev={number}")];
        for file in own.iter().map(String::as_str).chain(files.iter().copied()) {
            let (name, text) = file.split_once('=').unwrap();
            let file = folder.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        symlink(&folder, self.0.path().join("dev/block").join(number)).unwrap();
        fs::canonicalize(folder).unwrap()
    }

    fn layer(&self, dm_table: fn(&str) -> Option<String>) -> BlockLayer {
        BlockLayer {
            sys: self.0.path().to_owned(),
            dm_table,
            emulated: Vec::new(),
        }
    }

    /// A partition on a disk, and a volume on it.
    fn volume_on_partition(&self) -> PathBuf {
        let files = [
            "size=5000",
            "queue/rotational=1",
            "device/model=BIG",
            TRACED,
        ];
        self.add("sda", "8:0", &files);
        let files = ["size=1000", "partition=1", "start=2048"];
        let partition = self.add("sda/sda1", "8:1", &files);
        let files = ["size=600", "dm/uuid=LVM-x", "dm/name=pg-log"];
        self.stacked("dm-0", "254:0", &files, &[&partition])
    }

    /// A device on others.
    fn stacked(&self, name: &str, number: &str, files: &[&str], below: &[&Path]) -> PathBuf {
        let device = self.add(name, number, files);
        fs::create_dir(device.join("slaves")).unwrap();
        for lower in below {
            let link = device.join("slaves").join(lower.file_name().unwrap());
            symlink(lower, link).unwrap();
        }
        device
    }
}

#[test]
fn a_linear_volume_is_followed_to_the_sectors_of_its_disk() {
    let sys = Sysfs::new();
    let volume = sys.volume_on_partition();
    let layer = sys.layer(|_| Some("0 400 linear 8:1 100\n400 200 linear 8:1 700\n".into()));
    let stretch = |first_sector, sectors, offset_sectors| MappedSectorRange {
        name: "sda".into(),
        number: 8 << 20,
        first_sector,
        sectors,
        offset_sectors,
        traced: true,
    };
    let expected = [stretch(2148, 400, 0), stretch(2748, 200, 400)];
    assert_eq!(layer.stretches(&volume), expected);
    let base = layer.under(libc::makedev(254, 0), None);
    let chain = layer.chain(&base);
    let kinds = chain.iter().map(|link| (link.depth, &link.kind[..]));
    let expected = [(0, "LVM volume"), (1, "partition"), (2, "disk")];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
    assert_eq!(layer.disks(&volume), BTreeSet::from(["sda".to_owned()]));
}

#[test]
fn a_striped_volume_and_one_whose_table_is_not_told_have_requests_that_are_not() {
    let sys = Sysfs::new();
    let volume = sys.volume_on_partition();
    for table in [
        |_: &str| Some("0 600 striped 2 128 8:1 0 8:2 0".to_owned()),
        |_: &str| None,
    ] {
        let stretches = sys.layer(table).stretches(&volume);
        assert_eq!((stretches.len(), stretches[0].traced), (1, false));
        assert_eq!(stretches[0].number, 254 << 20);
    }
}

#[test]
fn a_disk_is_told_with_its_model_and_whether_it_rotates() {
    let sys = Sysfs::new();
    sys.volume_on_partition();
    let layer = sys.layer(|_| None);
    let chain = layer.chain(&layer.under(libc::makedev(8, 1), None));
    assert_eq!(chain[1].label.as_deref(), Some("BIG"));
    let expected = (Some(true), None);
    assert_eq!((chain[1].rotational, chain[0].rotational), expected);
    assert_eq!(
        layer.under(libc::makedev(9, 9), None),
        BackingDevices::default()
    );
}

const SECTORS: &str = "size=2000000";
/// The kernel traces requests to a device with such queues.
const TRACED: &str = "mq/0/cpu_list=0";

/// Two logical volumes on one partition, of which the first was grown behind the second.
fn two_volumes(sys: &Sysfs) -> PathBuf {
    sys.add("sda", "8:0", &[SECTORS, TRACED]);
    let files = ["size=900000", "partition=1", "start=1000"];
    let part = sys.add("sda/sda2", "8:2", &files);
    let files = ["size=1000", "dm/uuid=LVM-a", "dm/name=data"];
    sys.stacked("dm-0", "253:0", &files, &[&part]);
    let files = ["size=5000", "dm/uuid=LVM-b", "dm/name=log"];
    sys.stacked("dm-1", "253:1", &files, &[&part])
}

fn tables(number: &str) -> Option<String> {
    let table = match number {
        "253:0" => "0 600 linear 8:2 2048\n600 400 linear 8:2 9048\n",
        "253:1" => "0 5000 linear 8:2 3048\n",
        "253:2" => "0 900 crypt aes-xts-plain64 :64:logon:key 0 253:1 4096 1 allow_discards\n",
        "253:3" => "0 200 striped 2 128 8:0 0 8:16 0\n",
        "253:4" => "0 500 linear 9:0 2048\n",
        _ => return None,
    };
    Some(table.to_owned())
}

/// Devices that were met in this order, each for a role.
fn devices_of(layer: BlockLayer, met: &[(Role, (u32, u32))]) -> DiscoveredDevices {
    let mut devices = DiscoveredDevices::new(None, layer);
    for &(role, (major, minor)) in met {
        // On a mount that is no overlay; its own number does not count.
        let (number, place) = (libc::makedev(major, minor), Path::new("/proc"));
        assert!(devices.index_of(number, place, Some(role)).is_some());
    }
    devices
}

/// Number, first sector, sectors and offset of each range of a device.
fn places(devices: &DiscoveredDevices, device: u32) -> Vec<(u32, u64, u64, u64)> {
    let ranges = devices.ranges().into_iter();
    let place = |range: DeviceRange| {
        (
            range.number,
            range.first_sector,
            range.sectors,
            range.offset_sectors,
        )
    };
    ranges
        .filter(|range| range.device == device)
        .map(place)
        .collect()
}

fn shared(devices: &DiscoveredDevices) -> Vec<u32> {
    devices
        .described()
        .iter()
        .map(|device| device.shared)
        .collect()
}

#[test]
fn volumes_on_one_disk_share_it_and_have_its_requests() {
    let sys = Sysfs::new();
    two_volumes(&sys);
    let met = [(Role::Data, (253, 0)), (Role::Log, (253, 1))];
    let devices = devices_of(sys.layer(tables), &met);
    assert_eq!(shared(&devices), [0, 0]);
    let grown = [(8 << 20, 3048, 600, 0), (8 << 20, 10048, 400, 600)];
    assert_eq!(places(&devices, 0), grown);
    assert_eq!(places(&devices, 1), [(8 << 20, 4048, 5000, 0)]);
    let described = devices.described();
    let first = described.iter().map(|device| device.first_sector);
    assert_eq!(first.collect::<Vec<_>>(), [3048, 4048]);
    assert_eq!(devices.warnings(), [""; 0]);
}

#[test]
fn a_volume_over_two_disks_joins_what_lies_on_either() {
    let sys = Sysfs::new();
    let disks = [("sda", "8:0"), ("sdb", "8:16"), ("sdc", "8:32")];
    let disks = disks.map(|(name, number)| sys.add(name, number, &[SECTORS, TRACED]));
    let files = ["size=200", "dm/uuid=LVM-x", "dm/name=s"];
    sys.stacked("dm-3", "253:3", &files, &[&disks[0], &disks[1]]);
    let met = [
        (Role::Log, (8, 0)),
        (Role::Index, (8, 32)),
        (Role::Temp, (8, 16)),
        (Role::Data, (253, 3)),
    ];
    let devices = devices_of(sys.layer(tables), &met);
    assert_eq!(shared(&devices), [0, 1, 0, 0]);
    let warnings = devices.warnings();
    let expected = "requests for data are not recorded: the kernel tells none to LVM volume";
    assert!(
        warnings.len() == 1 && warnings[0].starts_with(expected),
        "{warnings:?}"
    );
}

#[test]
fn encryption_shifts_sectors_by_its_header() {
    let sys = Sysfs::new();
    let volume = two_volumes(&sys);
    let files = ["size=900", "dm/uuid=CRYPT-LUKS2-1", "dm/name=luks"];
    sys.stacked("dm-2", "253:2", &files, &[&volume]);
    let devices = devices_of(sys.layer(tables), &[(Role::Log, (253, 2))]);
    let shifted = [(8 << 20, 1000 + 3048 + 4096, 900, 0)];
    assert_eq!(places(&devices, 0), shifted);
    let chain = &devices.known[0].described().chain;
    let kinds: Vec<_> = chain.iter().map(|link| &link.kind[..]).collect();
    let expected = ["proc", "dm-crypt", "LVM volume", "partition", "disk"];
    assert_eq!(kinds, expected);
}

#[test]
fn a_volume_on_an_array_is_described_with_all_of_its_disks() {
    let sys = Sysfs::new();
    let disks = [("sda", "8:0"), ("sdb", "8:16")];
    let [one, other] = disks.map(|(name, number)| sys.add(name, number, &[SECTORS]));
    let files = [SECTORS, "md/level=raid1"];
    let array = sys.stacked("md0", "9:0", &files, &[&one, &other]);
    let files = ["size=500", "dm/uuid=LVM-x", "dm/name=v"];
    sys.stacked("dm-4", "253:4", &files, &[&array]);
    let met = [(Role::Log, (253, 4)), (Role::Data, (8, 16))];
    let devices = devices_of(sys.layer(tables), &met);
    assert_eq!(shared(&devices), [0, 0]);
    assert_eq!(devices.described()[0].first_sector, 2048);
    let warning = &devices.warnings()[0];
    assert!(
        warning.contains("requests for log are not recorded: the kernel tells none to md raid1"),
        "{warning}"
    );
}

#[test]
fn partitions_of_an_emulated_disk_share_it() {
    let sys = Sysfs::new();
    let partition = |device: &str, first_sector| EmulatedPartition {
        device: device.to_owned(),
        disk: "bench".to_owned(),
        first_sector,
        profile: "name = 'x'".to_owned(),
        path_us: Some(20.0),
        path_added_us: vec![(4, 30.0)],
        server_pid: Some(77),
    };
    for (name, number) in [("loop0", "7:0"), ("loop1", "7:1")] {
        sys.add(name, number, &[SECTORS, TRACED, "loop/backing_file=/f"]);
    }
    let mut layer = sys.layer(tables);
    layer.emulated = vec![partition("loop0", 0), partition("loop1", 4096)];
    let mut devices = devices_of(layer, &[(Role::Data, (7, 0))]);
    assert_eq!(devices.disk_servers(), [77]);
    devices.index_of(libc::makedev(7, 1), Path::new("/proc"), Some(Role::Log));
    assert_eq!(shared(&devices), [0, 0]);
    let log = &devices.described()[1];
    let expected = (4096, Some("name = 'x'"));
    assert_eq!((log.first_sector, log.profile.as_deref()), expected);
    let link = &log.chain[1];
    let expected = ("emulated disk", Some("bench"));
    assert_eq!((&link.kind[..], link.label.as_deref()), expected);
    assert_eq!(devices.disk_servers(), [77]);
}
