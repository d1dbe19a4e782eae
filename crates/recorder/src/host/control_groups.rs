//! Limits of the control groups that a process is in, and of their ancestors, in version 2 and 1.
//!
//! Source: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/blkio-controller.rst of Linux.

use std::fmt;
use std::path::{Path, PathBuf};

use itertools::Itertools;
use rustix::thread::{Pid, sched_getaffinity};

use crate::host::processes::file_text;

const ROOT: &str = "/sys/fs/cgroup";

/// Lowest memory limit of the control groups that a process is in; none if there is none.
pub fn memory_limit_bytes(pid: i32) -> Option<u64> {
    let groups = groups_of_process(pid, "memory");
    groups.iter().filter_map(|group| group_bytes(group)).min()
}

/// Cores that a process may use, by its affinity and by the quotas of the control groups that it is in.
pub fn process_core_limit(pid: i32) -> Option<f64> {
    let groups = groups_of_process(pid, "cpu");
    let quotas = groups.iter().filter_map(|group| group_millicores(group));
    let affinity = sched_getaffinity(Pid::from_raw(pid)).ok();
    let affinity = affinity.map(|cores| u64::from(cores.count()) * 1000);
    let least = quotas.chain(affinity).min()?;
    Some(least as f64 / 1000.0)
}

/// Limits of block I/O of the control groups that a process is in, the lowest of each kind for each device.
pub fn process_io_limits(pid: i32) -> Vec<IoLimit> {
    let groups = groups_of_process(pid, "blkio");
    let limits = groups.iter().flat_map(|group| group_io_limits(group));
    let limits = limits.sorted_by_key(|limit| (limit.device, limit.counted, limit.most_per_s));
    limits
        .dedup_by(|a, b| (a.device, a.counted) == (b.device, b.counted))
        .collect()
}

/// A limit of block I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoLimit {
    /// Number of the device that it holds for.
    pub device: (u32, u32),
    counted: &'static str,
    most_per_s: u64,
}

impl fmt::Display for IoLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            counted,
            most_per_s,
            ..
        } = self;
        match counted.contains("bytes") {
            true => write!(
                formatter,
                "{:.1} MB ({counted}) a second",
                *most_per_s as f64 / 1e6
            ),
            false => write!(formatter, "{most_per_s} {counted} a second"),
        }
    }
}

/// What is counted, the field of `io.max`, and the file of version 1.
const IO_LIMITS: [(&str, &str, &str); 4] = [
    ("reads", "riops", "blkio.throttle.read_iops_device"),
    ("writes", "wiops", "blkio.throttle.write_iops_device"),
    ("bytes read", "rbps", "blkio.throttle.read_bps_device"),
    ("bytes written", "wbps", "blkio.throttle.write_bps_device"),
];

fn group_io_limits(group: &Path) -> Vec<IoLimit> {
    let limit = |device: &str, counted, most: &str| {
        let (major, minor) = device.split_once(':')?;
        Some(IoLimit {
            device: (major.parse().ok()?, minor.parse().ok()?),
            counted,
            most_per_s: most.parse().ok()?, // `max` is none
        })
    };
    let mut limits = Vec::new();
    let unified = file_text(group.join("io.max"));
    for (counted, field, file) in IO_LIMITS {
        limits.extend(unified.lines().filter_map(|line| {
            let (device, fields) = line.split_once(' ')?;
            let mut fields = fields.split(' ').filter_map(|field| field.split_once('='));
            let (_, most) = fields.find(|(name, _)| *name == field)?;
            limit(device, counted, most)
        }));
        let lines = file_text(group.join(file));
        let lines = lines.lines().filter_map(|line| line.split_once(' '));
        limits.extend(lines.filter_map(|(device, most)| limit(device, counted, most)));
    }
    limits
}

/// Memory that a group may use, in version 2 or 1; none if there is no limit. Above `memory.high` the kernel reclaims
/// pages at once.
fn group_bytes(group: &Path) -> Option<u64> {
    let names = ["memory.max", "memory.high", "memory.limit_in_bytes"];
    let limits = names.map(|name| file_text(group.join(name)).parse().ok());
    let limits = limits.into_iter().flatten();
    limits.filter(|limit| *limit < 1 << 60).min()
}

/// Thousandths of a core that a group may use, in version 2 or 1; none if there is no limit.
fn group_millicores(group: &Path) -> Option<u64> {
    let unified = file_text(group.join("cpu.max"));
    let (quota, period) = match unified.split_once(' ') {
        Some((quota, period)) => (quota.parse().ok()?, period.parse().ok()?),
        None => {
            let number = |name: &str| file_text(group.join(name)).parse::<u64>().ok();
            (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
        }
    };
    quota.saturating_mul(1000_u64).checked_div(period)
}

/// Directories of the control groups that a process is in, with their ancestors, in version 1 those of a controller.
fn groups_of_process(pid: i32, controller: &str) -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let mut groups = Vec::new();
    for line in file_text(format!("/proc/{pid}/cgroup")).lines() {
        let parts: Vec<&str> = line.splitn(3, ':').collect();
        let [_, controllers, group] = parts[..] else {
            continue;
        };
        let hierarchies = match controllers {
            "" => vec![root.to_owned(), root.join("unified")],
            named if named.split(',').any(|name| name == controller) => vec![root.join(controller)],
            _ => Vec::new(),
        };
        for hierarchy in hierarchies {
            groups.extend(with_ancestors(&hierarchy, group));
        }
    }
    groups
}

/// Directories of a group and its ancestors in a hierarchy.
fn with_ancestors(hierarchy: &Path, group: &str) -> Vec<PathBuf> {
    let group = hierarchy.join(group.trim_start_matches('/'));
    let groups = group.ancestors();
    let within = groups.take_while(|group| group.starts_with(hierarchy));
    within.map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::host::machine::describe_machine;

    #[test]
    fn quotas_of_both_versions_are_cores() {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path();
        assert_eq!(group_millicores(group), None);
        fs::write(group.join("cpu.cfs_quota_us"), "-1\n").unwrap();
        fs::write(group.join("cpu.cfs_period_us"), "100000\n").unwrap();
        assert_eq!(group_millicores(group), None);
        fs::write(group.join("cpu.cfs_quota_us"), "250000\n").unwrap();
        assert_eq!(group_millicores(group), Some(2500));
        fs::write(group.join("cpu.max"), "max 100000\n").unwrap();
        assert_eq!(group_millicores(group), None);
        fs::write(group.join("cpu.max"), "50000 100000\n").unwrap();
        assert_eq!(group_millicores(group), Some(500));
    }

    #[test]
    fn a_process_on_one_core_has_one() {
        let own = std::process::id().cast_signed();
        let cores = process_core_limit(own).unwrap();
        assert!(cores > 0.0 && cores <= f64::from(describe_machine(own).cores));
    }

    #[test]
    fn a_limit_of_an_ancestor_counts() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/memory.max"), "123456789\n").unwrap();
        fs::write(root.join("a/b/memory.max"), "max\n").unwrap();
        let least = |group: &str| {
            let groups = with_ancestors(root, group);
            groups.iter().filter_map(|group| group_bytes(group)).min()
        };
        assert_eq!(least("/a/b"), Some(123_456_789));
        fs::write(root.join("a/b/memory.high"), "100000000\n").unwrap();
        assert_eq!(least("/a/b"), Some(100_000_000));
    }

    #[test]
    fn limits_of_block_io_of_both_versions_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path();
        assert_eq!(group_io_limits(group), Vec::new());
        fs::write(
            group.join("io.max"),
            "8:0 rbps=max wbps=1500000 riops=max wiops=60\n8:16 rbps=max wbps=max riops=max wiops=max\n",
        )
        .unwrap();
        fs::write(
            group.join("blkio.throttle.read_iops_device"),
            "254:16 100\n",
        )
        .unwrap();
        let limits = group_io_limits(group);
        let texts: Vec<_> = limits.iter().map(ToString::to_string).collect();
        let expected = [
            "100 reads a second",
            "60 writes a second",
            "1.5 MB (bytes written) a second",
        ];
        assert_eq!(texts, expected);
        let devices: Vec<_> = limits.iter().map(|limit| limit.device).collect();
        assert_eq!(devices, [(254, 16), (8, 0), (8, 0)]);
    }
}
