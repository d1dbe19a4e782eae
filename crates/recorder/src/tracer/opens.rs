//! The file of each open: recorded at the open itself, and reported before the end of its call.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::open_watch::OpenWatch;
use super::paths::Paths;
use crate::{Event, EventKind, Opened};

/// A call that opened or removed a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// When it ended, monotonic clock.
    pub time_ns: u64,
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// The call's result: the number of the file, or 0 for a removal.
    pub result: i64,
    /// Absolute path.
    pub path: String,
}

/// Collects the opens of a burst while their processes live.
pub struct Listener {
    watch: Arc<Mutex<OpenWatch>>,
    paths: Paths,
    opens: Vec<Open>,
}

impl Listener {
    /// Listens to these processes and their descendants.
    pub fn new(watch: Arc<Mutex<OpenWatch>>, pids: &[i32]) -> Self {
        Self {
            watch,
            paths: Paths::of(pids),
            opens: Vec::new(),
        }
    }

    /// Takes the records since the last time.
    pub fn hear(&mut self) {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch.drain(|told| {
            if !self.paths.is_ours(told.pid) {
                return;
            }
            let path = self.paths.resolve(told.pid, told.directory, &told.path);
            let path = path.map(|path| Paths::of_opened(told.pid, told.result, path));
            self.opens.extend(path.map(|path| Open {
                time_ns: told.time_ns,
                pid: told.pid,
                tid: told.tid,
                result: told.result,
                path,
            }));
        });
    }

    /// The opens, in order of time.
    pub fn into_opens(mut self) -> Vec<Open> {
        self.opens.sort_by_key(|open| open.time_ns);
        self.opens
    }
}

/// Largest distance between the two records of one end of a call.
const SLACK_NS: u64 = 2_000_000;

/// Opens of a burst, waiting for the ends of their calls.
pub struct Opens<'a> {
    waiting: HashMap<(i32, i64), VecDeque<&'a Open>>,
    /// Opens that succeeded.
    pub seen: u64,
    /// Those whose path is not known.
    pub unresolved: u64,
}

impl<'a> Opens<'a> {
    /// Of these, in order of time.
    pub fn new(opens: &'a [Open]) -> Self {
        let mut waiting: HashMap<_, VecDeque<_>> = HashMap::new();
        for open in opens {
            let key = (open.tid, open.result);
            waiting.entry(key).or_default().push_back(open);
        }
        Self {
            waiting,
            seen: 0,
            unresolved: 0,
        }
    }

    /// The event to insert before `event`: its call opens a file, or removes one (number -1).
    pub fn before(&mut self, event: &Event) -> Option<Event> {
        let EventKind::Exit { result, number } = event.kind else {
            return None;
        };
        let opens = opens_a_file(number);
        if result < 0 || !(opens || removes_a_file(number)) {
            return None;
        }
        let path = self.path(event.tid, result, event.time_ns);
        self.seen += u64::from(opens);
        self.unresolved += u64::from(opens && path.is_none());
        let opened = Opened {
            fd: if opens {
                i32::try_from(result).ok()?
            } else {
                -1
            },
            path: path?,
        };
        Some(Event {
            kind: EventKind::Opened(opened),
            ..event.clone()
        })
    }

    fn path(&mut self, tid: i32, result: i64, time_ns: u64) -> Option<String> {
        let waiting = self.waiting.get_mut(&(tid, result))?;
        while (waiting.front()).is_some_and(|open| open.time_ns + SLACK_NS < time_ns) {
            waiting.pop_front();
        }
        let near = |open: &&mut &Open| open.time_ns <= time_ns + SLACK_NS;
        waiting.front_mut().filter(near)?;
        waiting.pop_front().map(|open| open.path.clone())
    }
}

#[cfg(target_arch = "x86_64")]
fn opens_a_file(number: u32) -> bool {
    let calls = [
        libc::SYS_openat,
        libc::SYS_openat2,
        libc::SYS_open,
        libc::SYS_creat,
    ];
    calls.contains(&number.into())
}

#[cfg(target_arch = "x86_64")]
fn removes_a_file(number: u32) -> bool {
    [libc::SYS_unlinkat, libc::SYS_unlink].contains(&number.into())
}

#[cfg(not(target_arch = "x86_64"))]
fn opens_a_file(number: u32) -> bool {
    [libc::SYS_openat, libc::SYS_openat2].contains(&number.into())
}

#[cfg(not(target_arch = "x86_64"))]
fn removes_a_file(number: u32) -> bool {
    libc::SYS_unlinkat == libc::c_long::from(number)
}
