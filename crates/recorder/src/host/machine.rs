//! Describes this machine, and the limits of the recorded processes.

use std::path::Path;

use rustix::fs::statvfs;
use rustix::thread::sched_getaffinity;
use tierwise_recording::Machine;

use crate::host::processes::{number_after, text};

/// The machine that a process runs on, with the memory that its control group leaves it.
pub fn describe(pid: i32) -> Machine {
    let installed_kilobytes = number_after("MemTotal:", &text("/proc/meminfo"));
    let installed_bytes = installed_kilobytes.map(|kilobytes| kilobytes << 10);
    let memory_bytes = [installed_bytes, memory_limit_bytes(pid)];
    Machine {
        cores: sched_getaffinity(None).map_or(1, |cores| cores.count()),
        memory_bytes: memory_bytes.into_iter().flatten().min().unwrap_or(0),
        processes_bytes: 0,
        processor: processor(),
        kernel: text("/proc/sys/kernel/osrelease"),
    }
}

fn processor() -> String {
    let table = text("/proc/cpuinfo");
    let named = table.lines().find(|line| line.starts_with("model name"));
    let name = named.and_then(|line| line.split_once(':'));
    name.map_or(std::env::consts::ARCH, |(_, name)| name.trim())
        .to_owned()
}

/// Lowest memory limit of the control groups that a process is in; none if there is none.
#[must_use]
pub fn memory_limit_bytes(pid: i32) -> Option<u64> {
    let groups = text(format!("/proc/{pid}/cgroup"));
    let limits = |line: &str| {
        let (_, line) = line.split_once(':')?;
        let (kind, group) = line.split_once(':')?;
        let root = Path::new("/sys/fs/cgroup");
        match kind {
            "memory" => limit(&root.join("memory"), group, "memory.limit_in_bytes"),
            "" => {
                let limits = [root, &root.join("unified")];
                let limits = limits.map(|root| limit(root, group, "memory.max"));
                limits.into_iter().flatten().min()
            }
            _ => None,
        }
    };
    groups.lines().filter_map(limits).min()
}

/// Lowest limit of a group and its ancestors.
fn limit(hierarchy: &Path, group: &str, name: &str) -> Option<u64> {
    let group = hierarchy.join(group.trim_start_matches('/'));
    let groups = group.ancestors();
    let within = groups.take_while(|group| group.starts_with(hierarchy));
    let limits = within.filter_map(|one| text(one.join(name)).parse().ok());
    limits.filter(|limit| *limit < 1 << 60).min()
}

/// Free bytes for an ordinary user on the file system of a path.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let told = statvfs(path).ok()?;
    Some(told.f_bavail * told.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn this_machine_has_cores_memory_and_a_kernel() {
        let here = describe(std::process::id().cast_signed());
        assert!(here.cores > 0 && here.memory_bytes > 1 << 20);
        assert!(!here.processor.is_empty() && here.kernel.contains('.'));
        assert!(free_bytes(Path::new("/")).is_some());
    }

    #[test]
    fn a_limit_of_an_ancestor_counts() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/memory.max"), "123456789\n").unwrap();
        fs::write(root.join("a/b/memory.max"), "max\n").unwrap();
        assert_eq!(limit(root, "/a/b", "memory.max"), Some(123_456_789));
    }
}
