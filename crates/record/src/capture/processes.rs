//! Facts about processes from `/proc`: parents, threads, open files, calls under way, processor time.

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

/// A thread that is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveThread {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Its name.
    pub name: String,
    /// The process's name.
    pub process: String,
    /// The process's command line, words separated by spaces.
    pub command_line: String,
}

/// A number of a process that stands for an open file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFile {
    /// Process.
    pub pid: i32,
    /// Number.
    pub fd: i32,
    /// Path as the kernel writes it, `socket:[1]` where there is none.
    pub path: String,
}

/// A system call that a sleeping thread is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallUnderWay {
    /// Thread.
    pub tid: i32,
    /// Which call.
    pub number: u32,
    /// Its arguments.
    pub arguments: [u64; 6],
}

/// What one line of the kernel says about a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// The process that started it.
    pub parent: i32,
    /// Its name.
    pub name: String,
    /// Its processor time without that of its children, in ticks of `USER_HZ`.
    pub ticks: u64,
}

impl Stat {
    /// Of a process that is alive; proc_pid_stat(5).
    pub fn of(pid: i32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // The name, in parentheses, may hold anything.
        let (before, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_whitespace().skip(1);
        let parent = fields.next()?.parse().ok()?;
        let mut ticks = fields.skip(9).map_while(|field| field.parse::<u64>().ok());
        Some(Self {
            parent,
            name: before.split_once('(')?.1.to_owned(),
            ticks: ticks.next()? + ticks.next()?,
        })
    }
}

/// The process that started this one.
pub fn parent_of(pid: i32) -> Option<i32> {
    Stat::of(pid).map(|stat| stat.parent)
}

/// Process that a thread belongs to.
pub fn process_of(tid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// Threads of a process.
pub fn thread_ids(pid: i32) -> Vec<i32> {
    numbers_in(&format!("/proc/{pid}/task"))
}

/// Threads of a process, with their names.
pub fn threads(pid: i32) -> Vec<LiveThread> {
    let line = |path: String| {
        fs::read_to_string(path)
            .unwrap_or_default()
            .trim_end()
            .to_owned()
    };
    let process = line(format!("/proc/{pid}/comm"));
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command_line = String::from_utf8_lossy(&words)
        .replace('\0', " ")
        .trim_end()
        .to_owned();
    let live = |tid| LiveThread {
        pid,
        tid,
        name: line(format!("/proc/{pid}/task/{tid}/comm")),
        process: process.clone(),
        command_line: command_line.clone(),
    };
    thread_ids(pid).into_iter().map(live).collect()
}

/// A thread, by its own number alone.
pub fn thread(tid: i32) -> Option<LiveThread> {
    let own = |thread: &LiveThread| thread.tid == tid;
    threads(process_of(tid)?).into_iter().find(own)
}

/// Files that a process has open.
pub fn open_files(pid: i32) -> Vec<OpenFile> {
    let directory = PathBuf::from(format!("/proc/{pid}/fd"));
    let opened = |fd: i32| {
        let path = fs::read_link(directory.join(fd.to_string())).ok()?;
        let path = path.to_string_lossy().into_owned();
        Some(OpenFile { pid, fd, path })
    };
    let numbers = numbers_in(&directory.to_string_lossy());
    numbers.into_iter().filter_map(opened).collect()
}

/// The call that a thread sleeps in; none if it runs, can run, or sleeps for another reason.
pub fn call_under_way(pid: i32, tid: i32) -> Option<CallUnderWay> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).ok()?;
    let mut words = text.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        let digits = words.next()?.strip_prefix("0x")?;
        *argument = u64::from_str_radix(digits, 16).ok()?;
    }
    Some(CallUnderWay {
        tid,
        number,
        arguments,
    })
}

/// Processor time of a thread.
pub fn cpu_ns(tid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{tid}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Whether a thread is the kernel's own.
pub fn is_kernel_thread(tid: i32) -> bool {
    const PF_KTHREAD: u64 = 0x0020_0000;
    let stat = fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    let flags = (stat.rsplit_once(')')).and_then(|(_, rest)| rest.split_whitespace().nth(6));
    flags
        .and_then(|word| word.parse().ok())
        .is_none_or(|flags: u64| flags & PF_KTHREAD != 0)
}

/// Names of a directory's entries that are numbers, in order.
pub fn numbers_in<T: FromStr + Ord>(directory: &str) -> Vec<T> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut numbers: Vec<T> =
        (entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())).collect();
    numbers.sort_unstable();
    numbers
}
