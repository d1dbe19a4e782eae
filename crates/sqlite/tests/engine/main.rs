//! The files of a database, its recovery, and its clients.

mod clients;
mod placement;

use std::fs;
use std::path::{Path, PathBuf};

use tierwise_sqlite::{DatabaseAddress, FileDirectories, OpenDatabase};

// A database whose files are all in directories of their own, under one that goes with it.

struct Home(PathBuf);

impl Home {
    /// An empty directory; `name` is unique among the tests of a binary.
    fn new(name: &str) -> Self {
        let home =
            std::env::temp_dir().join(format!("tierwise-sqlite-{}-{name}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        let home = home.canonicalize().unwrap();
        for role in ["data", "log", "doublewrite", "temp", "system"] {
            fs::create_dir(home.join(role)).unwrap();
        }
        Self(home)
    }

    /// The directory that another process made.
    fn of(path: PathBuf) -> std::mem::ManuallyDrop<Self> {
        std::mem::ManuallyDrop::new(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn places(&self) -> FileDirectories {
        FileDirectories {
            data: self.0.join("data"),
            log: self.0.join("log"),
            doublewrite: self.0.join("doublewrite"),
            temp: self.0.join("temp"),
            system: self.0.join("system"),
        }
    }

    /// As clients read it.
    fn address_json(&self, pragmas: &[(&str, &str)]) -> String {
        let place = |name: &str| (name.to_owned(), self.0.join(name));
        let places: std::collections::BTreeMap<_, _> =
            ["data", "log", "doublewrite", "temp", "system"]
                .map(place)
                .into();
        let pragmas = [&[("busy_timeout", "60000")], pragmas].concat();
        serde_json::json!({"places": places, "pragmas": pragmas}).to_string()
    }

    fn address(&self, pragmas: &[(&str, &str)]) -> DatabaseAddress {
        DatabaseAddress::parse(&self.address_json(pragmas)).unwrap()
    }

    fn open(&self, pragmas: &[(&str, &str)]) -> OpenDatabase {
        OpenDatabase::open(&self.address(pragmas)).unwrap()
    }

    /// Names and sizes of all files, as `role/name`, sorted.
    fn files(&self) -> Vec<(String, u64)> {
        let mut files = Vec::new();
        for role in fs::read_dir(&self.0).unwrap() {
            for file in fs::read_dir(role.unwrap().path()).unwrap() {
                let file = file.unwrap();
                let name = file
                    .path()
                    .strip_prefix(&self.0)
                    .unwrap()
                    .display()
                    .to_string();
                files.push((name, file.metadata().unwrap().len()));
            }
        }
        files.sort();
        files
    }

    fn size(&self, name: &str) -> u64 {
        self.0.join(name).metadata().map_or(0, |file| file.len())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // What a test leaves in the directory for temporary files is no reason to fail it.
        let _ = fs::remove_dir_all(&self.0);
    }
}
