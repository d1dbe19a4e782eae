//! A tracefs of this process's own, mounted nowhere, and the instances that killed recorders left in the kernel.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;

use itertools::Itertools;
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use rustix::process::geteuid;

use crate::UserError;
use crate::host::paths::entries;
use crate::host::processes;
use crate::output::PREFIX;

/// A tracefs that ends with this process; no directory is needed for it.
pub struct Tracing {
    mount: OwnedFd,
    /// Instances made here begin with this name; it tells its owner.
    pub name: String,
}

impl Tracing {
    pub fn open() -> Result<Self, UserError> {
        if let Some(reason) = impossible() {
            return Err(UserError::new(
                format!("cannot record here: {reason}"),
                "run it as root, on a kernel with tracefs",
            ));
        }
        let pid = std::process::id().cast_signed();
        let began = processes::start_ticks(pid).unwrap_or(0);
        let mount = detached_tracefs().map_err(|error| {
            UserError::new(
                format!("cannot open tracefs: {}", std::io::Error::from(error)),
                "run it as root on the host itself, with Linux 5.10 or later",
            )
        })?;
        Ok(Self {
            mount,
            name: format!("{PREFIX}{pid}-{began}"),
        })
    }

    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.mount.as_raw_fd()))
    }

    /// Removes the instances of recorders that were killed, which switches them off.
    ///
    /// The kernel refuses to remove one that a live recorder has open, also in another container.
    pub fn sweep(&self) {
        for instance in entries(self.path().join("instances")) {
            if is_of_the_dead(&instance.file_name().to_string_lossy()) {
                let _ = fs::remove_dir(instance.path());
            }
        }
    }
}

/// Whether this is the name of an instance, `PREFIX-PID-START-KIND`, of a recorder that no longer runs.
fn is_of_the_dead(name: &str) -> bool {
    let words = name.strip_prefix(PREFIX).unwrap_or_default().split('-');
    let Some((pid, began, _kind)) = words.collect_tuple() else {
        return false;
    };
    match (pid.parse(), began.parse()) {
        (Ok(pid), Ok(began)) => processes::start_ticks(pid) != Some(began),
        _ => false,
    }
}

/// Reason why tracing is not possible here.
fn impossible() -> Option<&'static str> {
    let systems = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if !geteuid().is_root() {
        return Some("only root may read the kernel's tracepoints");
    }
    let known = systems.split_whitespace().any(|word| word == "tracefs");
    (!known).then_some("this kernel has no tracefs")
}

fn detached_tracefs() -> Result<OwnedFd, Errno> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(context.as_fd())?;
    // No set-user-id programs, no devices, no programs at all.
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_instances_of_recorders_that_ended_are_removed() {
        let own = std::process::id().cast_signed();
        let began = processes::start_ticks(own).unwrap();
        assert!(!is_of_the_dead(&format!("{PREFIX}{own}-{began}-calls")));
        assert!(is_of_the_dead(&format!(
            "{PREFIX}{own}-{}-calls",
            began + 1
        )));
        for foreign in [
            "tierwise-0a1b2c3d-calls",
            "perf",
            "tierwise-record-1",
            "tierwise-record-a-b-c",
        ] {
            assert!(!is_of_the_dead(foreign), "{foreign}");
        }
    }
}
