//! The profiles that ship with tierwise.

use std::fs;
use std::path::{Path, PathBuf};

use tierwise_device::{Library, Profile};

/// A shipped profile by its name.
pub fn profile(name: &str) -> Profile {
    let file = folder().join(format!("{name}.toml"));
    let text = fs::read_to_string(&file).expect("a shipped profile");
    Profile::parse_with(&text, &file.to_string_lossy(), &library()).expect("a valid profile")
}

/// All that ship, for those that refer to others.
pub fn library() -> Library {
    let files = fs::read_dir(folder()).expect("the shipped profiles");
    let read = |file: PathBuf| {
        let name = file.file_stem().expect("a name").to_string_lossy().into();
        (name, fs::read_to_string(&file).expect("a readable file"))
    };
    Library::new(
        files
            .map(|entry| read(entry.expect("a file").path()))
            .collect(),
    )
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tierwise/data/devices")
}
