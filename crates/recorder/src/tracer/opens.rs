//! The file of each open and each removal: its path is copied at the end of the call, and reported before that end.

use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::host::processes::{self, without_deleted_mark};
use crate::timeline::syscalls::{self, DescriptorChange};
use crate::trace_event::{TraceEvent, TraceEventKind};

/// Where a record has the path: after time, thread, result, directory and length.
const PATH_OFFSET: usize = 40;

/// A call that opened or removed a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// When it ended, monotonic clock.
    pub time_ns: u64,
    pub pid: i32,
    pub tid: i32,
    /// The call's result: the number of the file, or 0 for a removal.
    pub result: i64,
    pub path: String,
}

impl OpenCall {
    /// Reads a record of the exit while its process lives; none of a stranger's, or if the path is not known.
    pub fn heard(record: &[u8], paths: &mut PathResolver) -> Option<Self> {
        let word = |at: usize| Some(u64::from_ne_bytes(*record.get(at..)?.first_chunk()?));
        let (thread, result, directory) = (word(8)?, word(16)?.cast_signed(), word(24)? as i32);
        let (pid, tid) = ((thread >> 32) as i32, thread as i32);
        // With its zero; an error is a number below zero, which no length is.
        let length = usize::try_from(word(32)?).ok()?.checked_sub(1)?;
        let path = String::from_utf8_lossy(record.get(PATH_OFFSET..)?.get(..length)?);
        if !paths.is_ours(pid) {
            return None;
        }
        let path = paths.resolve(pid, directory, &path)?;
        Some(Self {
            time_ns: word(0)?,
            pid,
            tid,
            result,
            path: PathResolver::of_opened(pid, result, path),
        })
    }
}

/// Opens of a burst, by thread and by when the call ended.
pub struct OpenCalls<'a> {
    ended: HashMap<(i32, u64), &'a OpenCall>,
    /// Opens that succeeded.
    pub seen: u64,
    /// Those whose path is not known.
    pub unresolved: u64,
}

impl<'a> OpenCalls<'a> {
    pub fn new(opens: &'a [OpenCall]) -> Self {
        let keyed = opens.iter().map(|open| ((open.tid, open.time_ns), open));
        Self {
            ended: keyed.collect(),
            seen: 0,
            unresolved: 0,
        }
    }

    /// The event to insert before `event`: its call opens a file, or removes one (number -1).
    pub fn before(&mut self, event: &TraceEvent) -> Option<TraceEvent> {
        let TraceEventKind::Exit { result, number } = event.kind else {
            return None;
        };
        let opens = syscalls::call_shape(number).change == DescriptorChange::Open;
        if result < 0 || !(opens || syscalls::removes_name(number)) {
            return None;
        }
        let open = self.ended.get(&(event.tid, event.time_ns));
        self.seen += u64::from(opens);
        self.unresolved += u64::from(opens && open.is_none());
        let fd = if opens { result } else { -1 };
        Some(TraceEvent {
            kind: TraceEventKind::Opened {
                fd: i32::try_from(fd).ok()?,
                path: open?.path.clone(),
            },
            ..*event
        })
    }
}

// Converts paths as programs write them to absolute ones, each file under one name.

/// Resolves paths of opens while their processes live; caches constant facts.
#[derive(Default)]
pub struct PathResolver {
    ours: HashMap<i32, bool>,
    working: HashMap<i32, PathBuf>,
    folders: HashMap<PathBuf, PathBuf>,
}

impl PathResolver {
    /// Registers these processes as recorded, and the directory in which each works.
    pub fn of(pids: &[i32]) -> Self {
        let mut paths = Self::default();
        for &pid in pids {
            paths.ours.insert(pid, true);
            paths.working_directory(pid);
        }
        paths
    }

    /// Whether a process is recorded, or comes from one that is. One that has ended already counts: its thread
    /// number tells it from others later.
    pub fn is_ours(&mut self, pid: i32) -> bool {
        if let Some(&known) = self.ours.get(&pid) {
            return known;
        }
        let ours = match processes::parent_of(pid) {
            Some(parent) => parent > 1 && self.is_ours(parent),
            None => return true,
        };
        self.ours.insert(pid, ours);
        ours
    }

    /// The absolute path, without symbolic links on the way; none if the process ended before it could be resolved.
    pub fn resolve(&mut self, pid: i32, directory: i32, path: &str) -> Option<String> {
        let base = match directory {
            _ if path.starts_with('/') => PathBuf::new(),
            libc::AT_FDCWD => self.working_directory(pid)?,
            fd => fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?,
        };
        let plain = normalized_path(&base.join(path));
        let (Some(folder), Some(name)) = (plain.parent(), plain.file_name()) else {
            return Some(plain.to_string_lossy().into_owned());
        };
        let whole = self.real(pid, folder).join(name);
        Some(whole.to_string_lossy().into_owned())
    }

    /// Path of a file that a process has just opened by this path. One without a name, opened by its directory
    /// (`O_TMPFILE`), has its inode's number for a name, as in `/proc/PID/fd`. A removal, whose result is 0, opens none.
    pub fn of_opened(pid: i32, fd: i64, path: String) -> String {
        if fd == 0 {
            return path;
        }
        let link = fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok();
        let shown = link.and_then(|link| link.into_os_string().into_string().ok());
        shown
            .filter(|shown| never_had_a_name(shown))
            .map_or(path, |shown| without_deleted_mark(&shown).to_owned())
    }

    /// Working directory of a process. Of one that ended: that of all others if they share one, as a server's
    /// processes do.
    fn working_directory(&mut self, pid: i32) -> Option<PathBuf> {
        if let Some(known) = self.working.get(&pid) {
            return Some(known.clone());
        }
        if let Ok(found) = fs::read_link(format!("/proc/{pid}/cwd")) {
            self.working.insert(pid, found.clone());
            return Some(found);
        }
        let mut others = self.working.values();
        let first = others.next()?;
        others.all(|other| other == first).then(|| first.clone())
    }

    /// A folder without symbolic links, as `/proc/PID/fd` names files too; as it is in another root than ours.
    fn real(&mut self, pid: i32, folder: &Path) -> PathBuf {
        if let Some(known) = self.folders.get(folder) {
            return known.clone();
        }
        let root = fs::read_link(format!("/proc/{pid}/root"));
        let same_root = root.is_ok_and(|root| root == Path::new("/"))
            && processes::shares_namespace(pid, "mnt");
        let real = match fs::canonicalize(folder) {
            Ok(real) if same_root => real,
            _ => return folder.to_owned(),
        };
        self.folders.insert(folder.to_owned(), real.clone());
        real
    }
}

/// Whether a file is one that never had a name.
fn never_had_a_name(shown: &str) -> bool {
    let name = without_deleted_mark(shown);
    let inode = name.rsplit_once("/#").map_or("", |(_, inode)| inode);
    name != shown && !inode.is_empty() && inode.bytes().all(|byte| byte.is_ascii_digit())
}

/// Without `.` and `..`.
fn normalized_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_loses_what_says_nothing() {
        assert_eq!(
            normalized_path(Path::new("/a/./b/../c")),
            PathBuf::from("/a/c")
        );
    }

    #[test]
    fn a_file_that_never_had_a_name_is_told_by_its_inode() {
        use std::os::fd::AsRawFd;
        use std::os::unix::fs::OpenOptionsExt;
        let folder = Path::new("/dev/shm");
        let mut options = fs::OpenOptions::new();
        let options = options.write(true).custom_flags(libc::O_TMPFILE);
        let file = options.open(folder).expect("memory takes unnamed files");
        let asked = folder.to_string_lossy().into_owned();
        let (here, fd) = (std::process::id() as i32, file.as_raw_fd().into());
        let path = PathResolver::of_opened(here, fd, asked.clone());
        assert!(path.starts_with(&asked), "{path}");
        assert!(never_had_a_name(&format!("{path} (deleted)")), "{path}");
        assert_eq!(
            PathResolver::of_opened(here, 1_000_000, asked.clone()),
            asked
        );
        assert!(!never_had_a_name("/tmp/#sql-1 (deleted)") && !never_had_a_name("/tmp/#12"));
    }

    #[test]
    fn relative_paths_begin_where_the_process_works() {
        let here = std::process::id() as i32;
        let mut paths = PathResolver::of(&[here]);
        let folder = std::env::current_dir().expect("it exists");
        let path = paths
            .resolve(here, libc::AT_FDCWD, "./new")
            .expect("we live");
        let expected = fs::canonicalize(folder).expect("it exists").join("new");
        assert_eq!(Path::new(&path), expected);
        let nobody = i32::MAX;
        assert_eq!(paths.resolve(nobody, libc::AT_FDCWD, "./new"), Some(path));
        assert_eq!(paths.resolve(nobody, 5, "new"), None);
    }
}
