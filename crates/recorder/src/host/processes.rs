//! Facts about processes from `/proc`: identity, parents, threads, open files, calls under way, memory, processor time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::ops::{Add, Sub};
use std::path::Path;
use std::str::FromStr;

use itertools::Itertools;
use serde::{Deserialize, Serialize};

use crate::host::paths::directory_entries;

/// Unique identity of a process; the kernel may reuse a pid. The ledger of tierwise has the same form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub pid: i32,
    /// When it began, in ticks since the machine was started.
    pub start_ticks: u64,
    pub boot_id: String,
}

impl ProcessIdentity {
    /// Of a live process; a zombie is dead.
    pub fn of(pid: i32) -> Option<Self> {
        let boot_id = file_text("/proc/sys/kernel/random/boot_id");
        start_ticks(pid).map(|start_ticks| Self {
            pid,
            start_ticks,
            boot_id,
        })
    }

    pub fn alive(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }
}

/// What one line of the kernel says about a process or a thread; proc_pid_stat(5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessStat {
    pub parent: i32,
    pub name: String,
    /// Its processor time without that of its children, in ticks of `USER_HZ`.
    pub ticks: u64,
    /// When it began, in ticks since the machine was started.
    pub start_ticks: u64,
    /// Whether it runs or may yet run: a zombie does not.
    pub alive: bool,
    pub of_kernel: bool,
}

impl ProcessStat {
    /// Of a process or a thread that is not yet reaped.
    pub fn of(pid: i32) -> Option<Self> {
        const PF_KTHREAD: u64 = 0x0020_0000;
        let stat = file_text(format!("/proc/{pid}/stat"));
        // The name, in parentheses, may hold anything.
        let (before, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            name: before.split_once('(')?.1.to_owned(),
            ticks: number(11)? + number(12)?,
            start_ticks: number(19)?,
            alive: !matches!(fields[0], "Z" | "X"),
            of_kernel: number(6)? & PF_KTHREAD != 0,
        })
    }
}

/// When a live process began, in ticks since the machine was started.
pub fn start_ticks(pid: i32) -> Option<u64> {
    let stat = ProcessStat::of(pid).filter(|stat| stat.alive)?;
    Some(stat.start_ticks)
}

/// Name of a process as the kernel shows it; empty if it is gone.
pub fn program_name(pid: i32) -> String {
    file_text(format!("/proc/{pid}/comm"))
}

/// All processes, in order.
pub fn all_processes() -> Vec<i32> {
    numeric_entries("/proc")
}

/// Processes with one of these names whose parents have none of them, in order.
#[must_use]
pub fn first_processes(programs: &[String]) -> Vec<i32> {
    let named = |pid: i32| programs.contains(&program_name(pid));
    let pids = all_processes().into_iter();
    pids.filter(|&pid| named(pid) && parent_of(pid).is_some_and(|parent| !named(parent)))
        .collect()
}

/// Memory that processes hold: the private memory of each, plus the largest shared part of one.
#[must_use]
pub fn processes_memory_bytes(pids: &[i32]) -> u64 {
    let (mut private, mut shared) = (0, 0);
    for pid in pids {
        let status = file_text(format!("/proc/{pid}/status"));
        private += number_after_name("RssAnon:", &status).unwrap_or(0) << 10;
        shared = shared.max(number_after_name("RssShmem:", &status).unwrap_or(0) << 10);
    }
    private + shared
}

/// What a thread did since it was started, or several did in a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadActivity {
    /// Voluntary context switches.
    pub waits: u64,
    /// Processor time, by the scheduler's own clock.
    pub cpu_ns: u64,
}

impl Add for ThreadActivity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            waits: self.waits + other.waits,
            cpu_ns: self.cpu_ns + other.cpu_ns,
        }
    }
}

impl Sub for ThreadActivity {
    type Output = Self;

    /// None below 0: another thread has the id of one that ended.
    fn sub(self, other: Self) -> Self {
        Self {
            waits: self.waits.saturating_sub(other.waits),
            cpu_ns: self.cpu_ns.saturating_sub(other.cpu_ns),
        }
    }
}

/// What each thread of some processes did since it was started, by its id.
#[must_use]
pub fn thread_activities(pids: &[i32]) -> HashMap<i32, ThreadActivity> {
    let threads = pids
        .iter()
        .flat_map(|&pid| thread_ids(pid).into_iter().map(move |tid| (pid, tid)));
    threads
        .map(|(pid, tid)| {
            let task = format!("/proc/{pid}/task/{tid}");
            let status = file_text(format!("{task}/status"));
            let activity = ThreadActivity {
                waits: number_after_name("voluntary_ctxt_switches:", &status).unwrap_or(0),
                cpu_ns: number_after_name("", &file_text(format!("{task}/schedstat"))).unwrap_or(0),
            };
            (tid, activity)
        })
        .collect()
}

/// The first number of the line that begins with a name.
pub fn number_after_name(name: &str, text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveThread {
    pub pid: i32,
    pub tid: i32,
    pub name: String,
    pub process: String,
    /// The process's command line, words separated by spaces.
    pub command_line: String,
}

/// A number of a process that stands for an open file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFile {
    pub pid: i32,
    pub fd: i32,
    /// Path as the kernel writes it, `socket:[1]` where there is none.
    pub path: String,
}

/// The process that started this one.
pub fn parent_of(pid: i32) -> Option<i32> {
    ProcessStat::of(pid).map(|stat| stat.parent)
}

pub fn process_of_thread(tid: i32) -> Option<i32> {
    let pid = number_after_name("Tgid:", &file_text(format!("/proc/{tid}/status")))?;
    i32::try_from(pid).ok()
}

pub fn thread_ids(pid: i32) -> Vec<i32> {
    numeric_entries(format!("/proc/{pid}/task"))
}

pub fn thread_ids_of(pids: &[i32]) -> Vec<i32> {
    pids.iter().flat_map(|&pid| thread_ids(pid)).collect()
}

/// Words of the command line of a process, and an empty one after them.
pub fn command_line(pid: i32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = bytes.split(|byte| *byte == 0);
    words
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

pub fn live_threads(pid: i32) -> Vec<LiveThread> {
    let process = program_name(pid);
    let command_line = command_line(pid).join(" ").trim_end().to_owned();
    let live = |tid| LiveThread {
        pid,
        tid,
        name: file_text(format!("/proc/{pid}/task/{tid}/comm")),
        process: process.clone(),
        command_line: command_line.clone(),
    };
    thread_ids(pid).into_iter().map(live).collect()
}

/// A thread, by its own number alone.
pub fn live_thread(tid: i32) -> Option<LiveThread> {
    let own = |thread: &LiveThread| thread.tid == tid;
    live_threads(process_of_thread(tid)?).into_iter().find(own)
}

pub fn open_files(pid: i32) -> Vec<OpenFile> {
    let opened = |fd: i32| {
        let path = link_target_path(&format!("/proc/{pid}/fd/{fd}"))?;
        Some(OpenFile { pid, fd, path })
    };
    let numbers = numeric_entries(format!("/proc/{pid}/fd")).into_iter();
    numbers.filter_map(opened).collect()
}

/// The path that a link in `/proc` leads to, without a mark.
pub fn link_target_path(link: &str) -> Option<String> {
    let path = fs::read_link(link).ok()?;
    Some(without_deleted_mark(&path.to_string_lossy()).to_owned())
}

/// The path of a file, without the mark by which the kernel says that it was removed.
pub fn without_deleted_mark(path: &str) -> &str {
    path.strip_suffix(" (deleted)").unwrap_or(path)
}

/// Whether a process is in the same namespace of a kind as this one: `mnt`, `pid`.
pub fn shares_namespace(pid: i32, kind: &str) -> bool {
    let namespace = |who: &str| fs::read_link(format!("/proc/{who}/ns/{kind}")).ok();
    namespace(&pid.to_string()) == namespace("self")
}

/// Number and first arguments of the call that a thread sleeps in; none if it runs, can run, or sleeps for another reason.
pub fn call_under_way(pid: i32, tid: i32) -> Option<(u32, [u64; 4])> {
    let text = file_text(format!("/proc/{pid}/task/{tid}/syscall"));
    let mut words = text.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut arguments = [0; 4];
    for argument in &mut arguments {
        let digits = words.next()?.strip_prefix("0x")?;
        *argument = u64::from_str_radix(digits, 16).ok()?;
    }
    Some((number, arguments))
}

pub fn thread_cpu_ns(tid: i32) -> Option<u64> {
    number_after_name("", &file_text(format!("/proc/{tid}/schedstat")))
}

pub fn is_kernel_thread(tid: i32) -> bool {
    ProcessStat::of(tid).is_none_or(|stat| stat.of_kernel)
}

/// Names of a directory's entries that are numbers, in order.
pub fn numeric_entries<T: FromStr + Ord>(directory: impl AsRef<Path>) -> Vec<T> {
    let numbers = directory_entries(directory);
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.sorted_unstable().collect()
}

/// Text of a file without white space at its ends; empty if it cannot be read.
pub fn file_text(file: impl AsRef<Path>) -> String {
    let bytes = fs::read(file).unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

/// The kernel's thread that starts all other kernel threads.
const KERNEL_PARENT: i32 = 2;

/// All processes, and the kernel's own threads, at one instant. Reading a process takes some 20 µs of kernel time, so
/// one reading serves all queries about that instant.
pub struct ProcessTree {
    members: BTreeMap<i32, ProcessStat>,
}

impl ProcessTree {
    pub fn now() -> Self {
        let pids = all_processes().into_iter();
        Self {
            members: pids
                .filter_map(|pid| Some((pid, ProcessStat::of(pid)?)))
                .collect(),
        }
    }

    /// The processes that are alive, with everything they started, in order.
    pub fn with_descendants(&self, roots: &[i32]) -> Vec<i32> {
        let mut waiting = roots.to_vec();
        waiting.retain(|pid| self.members.contains_key(pid));
        let mut found = BTreeSet::new();
        while let Some(pid) = waiting.pop() {
            if found.insert(pid) {
                let children = self.members.iter().filter(|(_, of)| of.parent == pid);
                waiting.extend(children.map(|(&child, _)| child));
            }
        }
        found.into_iter().collect()
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
        let members = self.members.iter();
        let own = members.filter(|(_, stat)| stat.parent == KERNEL_PARENT);
        own.map(|(&pid, _)| pid).collect()
    }

    /// Processor time of each program since an earlier instant, in ticks: its pid, its name. Those that began since
    /// then count whole; kernel threads do not count.
    pub fn ran_since(&self, earlier: &Self) -> Vec<(i32, String, u64)> {
        let of_kernel = |pid: i32, stat: &ProcessStat| [pid, stat.parent].contains(&KERNEL_PARENT);
        let members = self.members.iter();
        let programs = members.filter(|&(&pid, stat)| !of_kernel(pid, stat));
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

    #[test]
    fn this_process_is_alive_and_one_that_began_at_another_time_is_not() {
        let own = ProcessIdentity::of(std::process::id().cast_signed()).unwrap();
        assert!(own.alive());
        let other = ProcessIdentity {
            start_ticks: own.start_ticks + 1,
            ..own
        };
        assert!(!other.alive());
    }

    #[test]
    fn memory_and_activity_are_those_of_live_processes() {
        let own = std::process::id().cast_signed();
        assert!(processes_memory_bytes(&[own]) > 1 << 16);
        assert_eq!(processes_memory_bytes(&[1 << 30]), 0);
        assert!(thread_activities(&[1 << 30]).is_empty());
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        let before = thread_activities(&[own])[&tid];
        std::thread::sleep(std::time::Duration::from_millis(1));
        let after = thread_activities(&[own])[&tid];
        assert!(after.waits > before.waits && after.cpu_ns > before.cpu_ns);
    }

    /// Processes with their parents, names and ticks.
    fn family(members: &[(i32, i32, &str, u64)]) -> ProcessTree {
        let stat = |&(pid, parent, name, ticks): &(i32, i32, &str, u64)| {
            let stat = ProcessStat {
                parent,
                name: name.to_owned(),
                ticks,
                ..ProcessStat::default()
            };
            (pid, stat)
        };
        ProcessTree {
            members: members.iter().map(stat).collect(),
        }
    }

    #[test]
    fn programs_ran_what_they_had_more_of() {
        let before = family(&[
            (7, 1, "cc1", 10),
            (8, 1, "idle", 5),
            (9, KERNEL_PARENT, "kworker", 1),
            (11, 1, "old", 90),
        ]);
        let after = family(&[
            (7, 1, "cc1", 40),
            (8, 1, "idle", 5),
            (9, KERNEL_PARENT, "kworker", 9),
            (10, 1, "new", 3),
            (11, 1, "again", 2),
        ]);
        let ran = after.ran_since(&before);
        let expected = [(7, "cc1", 30), (10, "new", 3), (11, "again", 2)];
        let expected = expected.map(|(pid, name, ticks)| (pid, name.to_owned(), ticks));
        assert_eq!(ran, expected);
    }

    #[test]
    fn descendants_of_descendants_belong_to_it_each_once() {
        let parents = [(1, 0), (7, 1), (9, 7), (8, 9), (10, 1)];
        let family = family(&parents.map(|(pid, parent)| (pid, parent, "", 0)));
        assert_eq!(family.with_descendants(&[9, 7]), [7, 8, 9]);
    }

    #[test]
    fn who_ended_has_no_descendants() {
        assert_eq!(family(&[(1, 0, "", 0)]).with_descendants(&[5]), [0; 0]);
    }

    #[test]
    fn a_removed_file_that_is_open_has_its_old_path() {
        use std::os::fd::AsRawFd;
        let (file, path) = tempfile::NamedTempFile::new().unwrap().into_parts();
        let path = path.keep().unwrap();
        fs::remove_file(&path).unwrap();
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        assert_eq!(link_target_path(&link).as_deref(), path.to_str());
    }
}
