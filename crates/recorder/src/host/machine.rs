//! Describes this machine, and the limits of the recorded processes.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use tierwise_recording::Machine;

use crate::host::processes::text;

const CGROUP_ROOT: &str = "/sys/fs/cgroup";

/// The machine that a process runs on, with the memory that its control group leaves it.
pub fn describe(pid: i32) -> Machine {
    let memory_bytes = [installed_bytes(), memory_limit_bytes(pid)];
    Machine {
        cores: cores(),
        memory_bytes: memory_bytes.into_iter().flatten().min().unwrap_or(0),
        processes_bytes: 0,
        processor: processor(),
        kernel: text("/proc/sys/kernel/osrelease"),
    }
}

fn cores() -> u32 {
    // SAFETY: a set of cores is bits alone, for which zero is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live set of that size.
    let refused = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    // SAFETY: reads a live set.
    let count = unsafe { libc::CPU_COUNT(&set) };
    if refused == 0 {
        count.cast_unsigned()
    } else {
        1
    }
}

fn installed_bytes() -> Option<u64> {
    let table = text("/proc/meminfo");
    let line = table
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes << 10)
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
        let mut parts = line.splitn(3, ':').skip(1);
        let (kind, group) = (parts.next()?, parts.next()?);
        let root = Path::new(CGROUP_ROOT);
        match kind {
            "memory" => limit(&root.join("memory"), group, "memory.limit_in_bytes"),
            "" => {
                let below = [root.to_owned(), root.join("unified")];
                below
                    .iter()
                    .filter_map(|one| limit(one, group, "memory.max"))
                    .min()
            }
            _ => None,
        }
    };
    groups.lines().filter_map(limits).min()
}

/// Lowest limit of a group and its ancestors.
fn limit(hierarchy: &Path, group: &str, name: &str) -> Option<u64> {
    let folder = hierarchy.join(group.trim_start_matches('/'));
    let within = folder
        .ancestors()
        .take_while(|one| one.starts_with(hierarchy));
    let limits = within.filter_map(|one| text(one.join(name)).parse().ok());
    limits.filter(|limit| *limit < 1 << 60).min()
}

/// Now, as RFC 3339 in UTC, to a second.
pub fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    rfc3339(since.map_or(0, |since| since.as_secs()))
}

fn rfc3339(seconds: u64) -> String {
    let (mut days, second) = (seconds / 86_400, seconds % 86_400);
    let mut year = 1970;
    let length = |year: u64| {
        let leap =
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        (365 + u64::from(leap), 28 + u64::from(leap))
    };
    while days >= length(year).0 {
        days -= length(year).0;
        year += 1;
    }
    let mut month = 1;
    for longest in [31, length(year).1, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < longest {
            break;
        }
        days -= longest;
        month += 1;
    }
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!(
        "{year}-{month:02}-{:02}T{hour:02}:{minute:02}:{:02}Z",
        days + 1,
        second % 60
    )
}

/// Free bytes for an ordinary user on the file system of a path.
pub fn free_bytes(path: &Path) -> Option<u64> {
    use std::os::unix::ffi::OsStrExt;
    let path = fs::canonicalize(path).ok()?;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: the structure is integers alone, for which zero is a value.
    let mut told: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values; the path ends with a zero.
    let refused = unsafe { libc::statvfs(path.as_ptr(), &raw mut told) };
    (refused == 0).then(|| told.f_bavail * told.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_868_799), "2000-02-29T23:59:59Z");
        assert_eq!(rfc3339(1_798_761_599), "2026-12-31T23:59:59Z");
    }

    #[test]
    fn this_machine_has_cores_memory_and_a_kernel() {
        let here = describe(std::process::id().cast_signed());
        assert!(here.cores > 0 && here.memory_bytes > 1 << 20);
        assert!(!here.processor.is_empty() && here.kernel.contains('.'));
        assert!(free_bytes(Path::new("/")).is_some());
    }

    #[test]
    fn a_limit_of_an_ancestor_counts() {
        let root = std::env::temp_dir().join(format!("tierwise-cgroup-{}", std::process::id()));
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/memory.max"), "123456789\n").unwrap();
        fs::write(root.join("a/b/memory.max"), "max\n").unwrap();
        assert_eq!(limit(&root, "/a/b", "memory.max"), Some(123_456_789));
        fs::remove_dir_all(root).unwrap();
    }
}
