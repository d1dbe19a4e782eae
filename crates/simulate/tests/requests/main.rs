//! Requests from files and patterns, put to models.

mod bad_input;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use tierwise_device::Profile;

#[path = "../../../device/tests/models/measured.rs"]
mod drives;
mod runs;

// A device whose times are known beforehand, and files in the tests' own directory.

/// 1 MB, 1,953 sectors; a read takes 100 µs, a write 50 µs, a flush 500 µs, whatever else is outstanding.
const MEMORY: &str = r#"
kind = "ram"
summary = "memory with times that are easy to add up"
capacity_mb = 1
read_latency_us = 100
write_latency_us = 50
flush_latency_us = 500
link_mb_per_s = 0

[source]
capacity_mb = "estimated: chosen to be easy to add up"
read_latency_us = "estimated: chosen to be easy to add up"
write_latency_us = "estimated: chosen to be easy to add up"
flush_latency_us = "estimated: chosen to be easy to add up"
link_mb_per_s = "estimated: chosen to be easy to add up"
"#;

fn memory() -> Profile {
    Profile::parse(MEMORY, "memory.toml").expect("a valid profile")
}

/// A file with this content, of a name of its own.
fn file(content: &[u8]) -> PathBuf {
    let path = new_path();
    std::fs::write(&path, content).expect("a writable directory");
    path
}

/// A path at which there is no file.
fn new_path() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("{}-{number}.csv", std::process::id());
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}
