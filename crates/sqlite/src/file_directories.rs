//! The directory of each file of a database.

use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int};
use std::io;
use std::mem::transmute;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::ffi;
use serde::Deserialize;

use crate::placing_vfs;

/// Directories of the files of one database; several may be the same.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct FileDirectories {
    /// Of the database file: tables, indexes and catalogue.
    pub data: PathBuf,
    /// Of the write-ahead log.
    pub log: PathBuf,
    /// Of the rollback journal.
    pub doublewrite: PathBuf,
    /// Of sorts, temporary tables and statement journals that leave memory.
    pub temp: PathBuf,
    /// Of the write-ahead log's index, which is shared memory.
    pub system: PathBuf,
}

impl FileDirectories {
    /// The same directories by their names without links, as SQLite writes them.
    ///
    /// # Errors
    /// If one of them is not there.
    pub fn canonical(&self) -> io::Result<Self> {
        let canonical = |path: &Path| {
            let named = |error: io::Error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            };
            path.canonicalize().map_err(named)
        };
        Ok(Self {
            data: canonical(&self.data)?,
            log: canonical(&self.log)?,
            doublewrite: canonical(&self.doublewrite)?,
            temp: canonical(&self.temp)?,
            system: canonical(&self.system)?,
        })
    }

    /// Whether a file lies in one of the directories, by its name as SQLite has resolved it.
    pub fn hold(&self, name: &CStr) -> bool {
        let path = Path::new(OsStr::from_bytes(name.to_bytes()));
        let places = [
            &self.data,
            &self.log,
            &self.doublewrite,
            &self.temp,
            &self.system,
        ];
        path.file_name().is_some() && places.iter().any(|&place| path.parent() == Some(place))
    }

    /// The database file, by the name that SQLite receives.
    pub fn database(&self) -> PathBuf {
        self.data.join("tierwise.db")
    }
}

/// The names that SQLite makes up beside the database file, and the actual place of each of these files.
///
/// The names have no `-`: from one SQLite would infer a database file in the same directory, and ask for its
/// owner.
pub(crate) struct SideFileNames {
    moved: [(CString, CString); 3],
    temp: PathBuf,
    temp_files: AtomicU64,
}

impl SideFileNames {
    pub fn new(places: &FileDirectories) -> Self {
        let move_to = |suffix: &str, directory: &Path, name: &str| {
            let mut beside = places.database().into_os_string();
            beside.push(suffix);
            (c_string(beside), c_string(directory.join(name).into()))
        };
        Self {
            moved: [
                move_to("-wal", &places.log, "tierwise.wal"),
                move_to("-journal", &places.doublewrite, "tierwise.journal"),
                move_to("-shm", &places.system, "tierwise.shm"),
            ],
            temp: places.temp.clone(),
            temp_files: AtomicU64::new(0),
        }
    }

    /// Where the file is that SQLite calls `name`, if it is not there.
    pub fn moved(&self, name: &CStr) -> Option<&CStr> {
        let mut pairs = self.moved.iter();
        pairs
            .find(|(asked, _)| asked.as_c_str() == name)
            .map(|(_, moved)| moved.as_c_str())
    }

    /// A name for another temporary file.
    pub fn next_temp(&self) -> CString {
        let number = self.temp_files.fetch_add(1, Ordering::Relaxed);
        let name = format!("tierwise-{}-{number}.temp", std::process::id());
        c_string(self.temp.join(name).into())
    }
}

pub(crate) fn c_string(path: OsString) -> CString {
    CString::new(path.into_vec()).expect("a path has no zero byte")
}

// The place of the write-ahead log's index, the file `-shm`.
//
// The VFS `unix` makes its name up, beside the database file, and asks no other VFS. But its system calls
// can be replaced; these two change the name and call the original ones.

type OpenCall = unsafe extern "C" fn(*const c_char, c_int, c_int) -> c_int;
type UnlinkCall = unsafe extern "C" fn(*const c_char) -> c_int;

struct OriginalCalls {
    open: OpenCall,
    unlink: UnlinkCall,
}

static ORIGINAL: OnceLock<OriginalCalls> = OnceLock::new();

/// Replace the calls of the VFS `unix`, once for the process.
pub(crate) fn redirect_unix_calls(unix: *mut ffi::sqlite3_vfs) {
    ORIGINAL.get_or_init(|| {
        // SAFETY: `unix` is SQLite's own VFS, and SQLite gives these types to the calls of these names.
        unsafe {
            let original =
                |name: &CStr| (*unix).xGetSystemCall.expect("unix has it")(unix, name.as_ptr());
            let calls = OriginalCalls {
                open: transmute::<ffi::sqlite3_syscall_ptr, OpenCall>(original(c"open")),
                unlink: transmute::<ffi::sqlite3_syscall_ptr, UnlinkCall>(original(c"unlink")),
            };
            let replace = (*unix).xSetSystemCall.expect("unix has it");
            replace(
                unix,
                c"open".as_ptr(),
                transmute::<OpenCall, ffi::sqlite3_syscall_ptr>(open_redirected),
            );
            replace(
                unix,
                c"unlink".as_ptr(),
                transmute::<UnlinkCall, ffi::sqlite3_syscall_ptr>(unlink),
            );
            calls
        }
    });
}

fn original_calls() -> &'static OriginalCalls {
    ORIGINAL.wait()
}

unsafe extern "C" fn open_redirected(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: SQLite passes a path that ends in zero.
    unsafe { (original_calls().open)(moved_path(path), flags, mode) }
}

unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: SQLite passes a path that ends in zero.
    unsafe { (original_calls().unlink)(moved_path(path)) }
}

/// # Safety
/// `path` ends in zero.
unsafe fn moved_path(path: *const c_char) -> *const c_char {
    // SAFETY: by the caller's word.
    placing_vfs::moved_file(unsafe { CStr::from_ptr(path) }).map_or(path, CStr::as_ptr)
}
