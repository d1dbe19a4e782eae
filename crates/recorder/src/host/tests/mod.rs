//! A sysfs in a directory of a test's own.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::host::block_layer::BlockLayer;

pub struct Sysfs(TempDir);

impl Sysfs {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("dev/block")).unwrap();
        Self(folder)
    }

    /// A device with these files, as `NAME=TEXT`.
    pub fn add(&self, path: &str, number: &str, files: &[&str]) -> PathBuf {
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

    pub fn layer(&self, dm_table: fn(&str) -> Option<String>) -> BlockLayer {
        BlockLayer::of_test(self.0.path().to_owned(), dm_table)
    }

    pub fn disk_with_partition(&self) -> (PathBuf, PathBuf) {
        let disk = self.add(
            "sda",
            "8:0",
            &["size=5000", "queue/rotational=1", "device/model=BIG"],
        );
        fs::create_dir(disk.join("mq")).unwrap();
        let files = ["size=1000", "partition=1", "start=2048"];
        (disk, self.add("sda/sda1", "8:1", &files))
    }

    pub fn volume_on(&self, below: &Path) -> PathBuf {
        let files = ["size=600", "dm/uuid=LVM-x", "dm/name=pg-log"];
        self.stacked("dm-0", "254:0", &files, &[below])
    }

    /// A device on others.
    pub fn stacked(&self, name: &str, number: &str, files: &[&str], below: &[&Path]) -> PathBuf {
        let device = self.add(name, number, files);
        fs::create_dir(device.join("slaves")).unwrap();
        for one in below {
            let link = device.join("slaves").join(one.file_name().unwrap());
            symlink(one, link).unwrap();
        }
        device
    }
}
