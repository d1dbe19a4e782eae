//! Facts about processes from `/proc`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Unique identity of a process; the kernel may reuse a pid. The ledger of tierwise has the same form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its number.
    pub pid: i32,
    /// When it began, in ticks since the machine was started.
    pub start_ticks: u64,
    /// Which start of the machine.
    pub boot_id: String,
}

impl Identity {
    /// Of a live process; a zombie is dead.
    pub fn of(pid: i32) -> Option<Self> {
        let boot_id = text(Path::new("/proc/sys/kernel/random/boot_id"));
        start_ticks(pid).map(|start_ticks| Self {
            pid,
            start_ticks,
            boot_id,
        })
    }

    /// Whether this process still runs.
    pub fn alive(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }
}

/// When a live process began, in ticks since the machine was started.
pub fn start_ticks(pid: i32) -> Option<u64> {
    let fields = stat(pid)?;
    let state = fields.first()?;
    (state != "Z" && state != "X").then(|| fields.get(19)?.parse().ok())?
}

/// Fields of proc_pid_stat(5) after the name, which may hold anything.
fn stat(pid: i32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// Name of a process as the kernel shows it; empty if it is gone.
pub fn program_of(pid: i32) -> String {
    text(&PathBuf::from(format!("/proc/{pid}/comm")))
}

/// All processes, in order.
pub fn all() -> Vec<i32> {
    numbers_in(Path::new("/proc"))
}

/// Processes with one of these names whose parents have none of them, in order.
pub fn first_processes(programs: &[String]) -> Vec<i32> {
    let named = |pid: i32| programs.contains(&program_of(pid));
    let parent = |pid: i32| -> Option<i32> { stat(pid)?.get(1)?.parse().ok() };
    let pids = all().into_iter();
    pids.filter(|&pid| named(pid) && parent(pid).is_some_and(|parent| !named(parent)))
        .collect()
}

/// Memory that processes hold: the private memory of each, plus the largest shared part of one.
#[must_use]
pub fn memory_bytes(pids: &[i32]) -> u64 {
    let (mut private, mut shared) = (0, 0);
    for pid in pids {
        let status = text(&PathBuf::from(format!("/proc/{pid}/status")));
        private += field(&status, "RssAnon:") << 10;
        shared = shared.max(field(&status, "RssShmem:") << 10);
    }
    private + shared
}

/// What the threads of some processes did since each started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Voluntary context switches.
    pub waits: u64,
    /// Processor time, by the scheduler's own clock.
    pub cpu_ns: u64,
}

/// Activity of all live threads of some processes.
pub fn activity(pids: &[i32]) -> Activity {
    let tasks = pids.iter().flat_map(|pid| {
        let folder = PathBuf::from(format!("/proc/{pid}/task"));
        let numbers = numbers_in(&folder).into_iter();
        numbers.map(move |tid| folder.join(tid.to_string()))
    });
    tasks.fold(Activity::default(), |sum, task| Activity {
        waits: sum.waits + field(&text(&task.join("status")), "voluntary_ctxt_switches:"),
        cpu_ns: sum.cpu_ns + field(&text(&task.join("schedstat")), ""),
    })
}

/// The first number of the line that begins with a name; 0 if there is none.
fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let word = line.and_then(|rest| rest.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Entries of a directory that are numbers, in order.
fn numbers_in(directory: &Path) -> Vec<i32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut numbers: Vec<i32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// Text of a file without white space at its ends; empty if it cannot be read.
pub fn text(file: &Path) -> String {
    let bytes = fs::read(file).unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_one_that_began_at_another_time_is_not() {
        let own = Identity::of(std::process::id().cast_signed()).unwrap();
        assert!(own.alive());
        let other = Identity {
            start_ticks: own.start_ticks + 1,
            ..own
        };
        assert!(!other.alive());
    }

    #[test]
    fn memory_and_activity_are_those_of_live_processes() {
        let own = std::process::id().cast_signed();
        assert!(memory_bytes(&[own]) > 1 << 16);
        assert_eq!(memory_bytes(&[1 << 30]), 0);
        assert_eq!(activity(&[1 << 30]), Activity::default());
        let before = activity(&[own]);
        std::thread::sleep(std::time::Duration::from_millis(1));
        let after = activity(&[own]);
        assert!(after.waits > before.waits && after.cpu_ns > before.cpu_ns);
    }
}
