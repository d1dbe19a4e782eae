//! Devices as sysfs would show them, in a directory of the test's own.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;

use super::*;
use crate::sysfs::disks;

struct Sysfs(PathBuf);

impl Sysfs {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tierwise-sys-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("dev/block")).unwrap();
        Self(path)
    }

    /// A device with these files, as `NAME=TEXT`.
    fn add(&self, path: &str, number: &str, files: &[&str]) -> PathBuf {
        let folder = self.0.join("devices").join(path);
        let own = [format!("dev={number}")];
        for file in own.iter().map(String::as_str).chain(files.iter().copied()) {
            let (name, text) = file.split_once('=').unwrap();
            let file = folder.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        symlink(&folder, self.0.join("dev/block").join(number)).unwrap();
        fs::canonicalize(folder).unwrap()
    }

    fn layer(&self, dm_table: fn(&str) -> Option<String>) -> BlockLayer {
        BlockLayer {
            sys: self.0.clone(),
            dm_table,
        }
    }

    fn disk_with_partition(&self) -> (PathBuf, PathBuf) {
        let disk = self.add(
            "sda",
            "8:0",
            &["size=5000", "queue/rotational=1", "device/model=BIG"],
        );
        fs::create_dir(disk.join("mq")).unwrap();
        let files = ["size=1000", "partition=1", "start=2048"];
        (disk, self.add("sda/sda1", "8:1", &files))
    }

    fn volume_on(&self, below: &Path) -> PathBuf {
        let files = ["size=600", "dm/uuid=LVM-x", "dm/name=pg-log"];
        let volume = self.add("dm-0", "254:0", &files);
        fs::create_dir(volume.join("slaves")).unwrap();
        symlink(below, volume.join("slaves/sda1")).unwrap();
        volume
    }
}

impl Drop for Sysfs {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn a_linear_volume_is_followed_to_the_sectors_of_its_disk() {
    let sys = Sysfs::new("linear");
    let (_, partition) = sys.disk_with_partition();
    let volume = sys.volume_on(&partition);
    let layer = sys.layer(|_| Some("0 400 linear 8:1 100\n400 200 linear 8:1 700\n".into()));
    let stretch = |first_sector, sectors, offset_sectors| Stretch {
        name: "sda".into(),
        number: 8 << 20,
        first_sector,
        sectors,
        offset_sectors,
        told: true,
    };
    let expected = [stretch(2148, 400, 0), stretch(2748, 200, 400)];
    assert_eq!(layer.stretches(&volume), expected);
    let base = layer.under(libc::makedev(254, 0), None);
    let kinds: Vec<_> = layer
        .chain(&base)
        .into_iter()
        .map(|link| (link.depth, link.kind))
        .collect();
    let expected = [(0, "LVM volume"), (1, "partition"), (2, "disk")];
    assert_eq!(
        kinds,
        expected.map(|(depth, kind)| (depth, kind.to_owned()))
    );
    assert_eq!(disks(&volume), BTreeSet::from(["sda".to_owned()]));
}

#[test]
fn a_striped_volume_and_one_whose_table_is_not_told_have_requests_that_are_not() {
    let sys = Sysfs::new("striped");
    let (_, partition) = sys.disk_with_partition();
    let volume = sys.volume_on(&partition);
    for table in [
        |_: &str| Some("0 600 striped 2 128 8:1 0 8:2 0".to_owned()),
        |_: &str| None,
    ] {
        let stretches = sys.layer(table).stretches(&volume);
        assert_eq!((stretches.len(), stretches[0].told), (1, false));
        assert_eq!(stretches[0].number, 254 << 20);
    }
}

#[test]
fn a_disk_is_told_with_its_model_and_whether_it_rotates() {
    let sys = Sysfs::new("disk");
    sys.disk_with_partition();
    let layer = sys.layer(|_| None);
    let chain = layer.chain(&layer.under(libc::makedev(8, 1), None));
    assert_eq!(chain[1].label.as_deref(), Some("BIG"));
    assert_eq!(
        (chain[1].rotational, chain[0].rotational),
        (Some(true), None)
    );
    assert_eq!(layer.under(libc::makedev(9, 9), None), Base::default());
}
