//! Parents of all processes at one instant.
//!
//! Reading a process takes some 20 µs of kernel time, so one reading serves all queries about that instant.

use std::collections::BTreeMap;

use super::processes::{self, is_kernel_thread, parent_of};

/// The kernel's thread that starts all other kernel threads.
const KERNEL_PARENT: i32 = 2;

/// All processes, and the kernel's own threads, each with its parent.
pub struct Family {
    parents: BTreeMap<i32, i32>,
}

impl Family {
    /// The state at this instant.
    pub fn now() -> Self {
        let pids = processes::numbers_in("/proc").into_iter();
        Self {
            parents: pids
                .filter_map(|pid| Some((pid, parent_of(pid)?)))
                .collect(),
        }
    }

    /// The processes that are alive, with everything they started, in order.
    pub fn with_descendants(&self, roots: &[i32]) -> Vec<i32> {
        let alive = |pid: &&i32| self.parents.contains_key(pid);
        let mut found: Vec<i32> = roots.iter().filter(alive).copied().collect();
        found.sort_unstable();
        found.dedup();
        let mut looked_at = 0;
        while let Some(&parent) = found.get(looked_at) {
            let children = self.parents.iter().filter(|(_, of)| **of == parent);
            let new = children.map(|(&pid, _)| pid);
            let new: Vec<i32> = new.filter(|pid| !found.contains(pid)).collect();
            found.extend(new);
            looked_at += 1;
        }
        found.sort_unstable();
        found
    }

    /// The kernel's own threads; none where they cannot be seen, as in a container.
    pub fn kernel_threads(&self) -> Vec<i32> {
        if !self.parents.contains_key(&KERNEL_PARENT) || !is_kernel_thread(KERNEL_PARENT) {
            return Vec::new();
        }
        let own = self.parents.iter().filter(|(_, of)| **of == KERNEL_PARENT);
        own.map(|(&pid, _)| pid).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(parents: &[(i32, i32)]) -> Family {
        Family {
            parents: parents.iter().copied().collect(),
        }
    }

    #[test]
    fn descendants_of_descendants_belong_to_it_each_once() {
        let family = family(&[(1, 0), (7, 1), (9, 7), (8, 9), (10, 1)]);
        assert_eq!(family.with_descendants(&[9, 7]), [7, 8, 9]);
    }

    #[test]
    fn who_ended_has_no_descendants() {
        assert_eq!(family(&[(1, 0)]).with_descendants(&[5]), [0; 0]);
    }
}
