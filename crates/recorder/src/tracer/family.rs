//! Parents of all processes at one instant.
//!
//! Reading a process takes some 20 µs of kernel time, so one reading serves all queries about that instant.

use std::collections::BTreeMap;

use crate::host::processes::{self, Stat, is_kernel_thread};

/// The kernel's thread that starts all other kernel threads.
const KERNEL_PARENT: i32 = 2;

/// All processes, and the kernel's own threads, each with its parent, its name and its processor time.
pub struct Family {
    members: BTreeMap<i32, Stat>,
}

impl Family {
    /// The state at this instant.
    pub fn now() -> Self {
        let pids = processes::numbers_in("/proc").into_iter();
        Self {
            members: pids.filter_map(|pid| Some((pid, Stat::of(pid)?))).collect(),
        }
    }

    /// The processes that are alive, with everything they started, in order.
    pub fn with_descendants(&self, roots: &[i32]) -> Vec<i32> {
        let alive = |pid: &&i32| self.members.contains_key(pid);
        let mut found: Vec<i32> = roots.iter().filter(alive).copied().collect();
        found.sort_unstable();
        found.dedup();
        let mut looked_at = 0;
        while let Some(&parent) = found.get(looked_at) {
            let children = self.members.iter().filter(|(_, of)| of.parent == parent);
            let new = children.map(|(&pid, _)| pid);
            let new: Vec<i32> = new.filter(|pid| !found.contains(pid)).collect();
            found.extend(new);
            looked_at += 1;
        }
        found.sort_unstable();
        found
    }

    /// First process of the program that a process is of: its last ancestor in a row whose name fits; none if its own
    /// does not.
    pub fn first_of(&self, pid: i32, fits: impl Fn(&str) -> bool) -> Option<i32> {
        let is_one = |pid: i32| self.members.get(&pid).filter(|stat| fits(&stat.name));
        let mut stat = is_one(pid)?;
        let mut first = pid;
        while let Some(above) = is_one(stat.parent).filter(|_| stat.parent != first) {
            (first, stat) = (stat.parent, above);
        }
        Some(first)
    }

    /// The kernel's own threads; none where they cannot be seen, as in a container.
    pub fn kernel_threads(&self) -> Vec<i32> {
        if !self.members.contains_key(&KERNEL_PARENT) || !is_kernel_thread(KERNEL_PARENT) {
            return Vec::new();
        }
        let of_kernel = |stat: &Stat| stat.parent == KERNEL_PARENT;
        let own = self.members.iter().filter(|(_, stat)| of_kernel(stat));
        own.map(|(&pid, _)| pid).collect()
    }

    /// Processor time of each program since an earlier instant, in ticks: its pid, its name. Those that began since
    /// then count whole; kernel threads do not count.
    pub fn ran_since(&self, earlier: &Self) -> Vec<(i32, String, u64)> {
        let programs = self
            .members
            .iter()
            .filter(|&(&pid, stat)| pid != KERNEL_PARENT && stat.parent != KERNEL_PARENT);
        let ran = programs.map(|(&pid, stat)| {
            let before = earlier.members.get(&pid).map_or(0, |before| before.ticks);
            // A pid that was used again has had less.
            let ticks = stat.ticks.checked_sub(before).unwrap_or(stat.ticks);
            (pid, stat.name.clone(), ticks)
        });
        ran.filter(|(_, _, ticks)| *ticks > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(parents: &[(i32, i32)]) -> Family {
        let stat = |&(pid, parent): &(i32, i32)| {
            let stat = Stat {
                parent,
                ..Stat::default()
            };
            (pid, stat)
        };
        Family {
            members: parents.iter().map(stat).collect(),
        }
    }

    fn with_time(times: &[(i32, &str, u64)]) -> Family {
        let stat = |&(pid, name, ticks): &(i32, &str, u64)| {
            let stat = Stat {
                parent: if name == "kworker" { KERNEL_PARENT } else { 1 },
                name: name.to_owned(),
                ticks,
                ..Stat::default()
            };
            (pid, stat)
        };
        Family {
            members: times.iter().map(stat).collect(),
        }
    }

    #[test]
    fn programs_ran_what_they_had_more_of() {
        let before = with_time(&[
            (7, "cc1", 10),
            (8, "idle", 5),
            (9, "kworker", 1),
            (11, "old", 90),
        ]);
        let after = with_time(&[
            (7, "cc1", 40),
            (8, "idle", 5),
            (9, "kworker", 9),
            (10, "new", 3),
            (11, "again", 2),
        ]);
        let ran = after.ran_since(&before);
        let shown: Vec<_> = ran
            .iter()
            .map(|(pid, name, ticks)| (*pid, &name[..], *ticks))
            .collect();
        assert_eq!(shown, [(7, "cc1", 30), (10, "new", 3), (11, "again", 2)]);
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
