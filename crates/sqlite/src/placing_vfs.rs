//! An SQLite VFS that puts each kind of file into a directory of its own, and counts the requests by kind.
//!
//! It stands on the VFS `unix`, which does all the work. This one gives it other names for the write-ahead
//! log, the rollback journal and temporary files, where they are opened, deleted and looked for. The VFS
//! `unix` makes up the name of the log's index itself, so that is changed in its system calls
//! ([`crate::file_directories`]).

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;
use std::sync::Mutex;

use rusqlite::ffi;

use crate::counted_file::{self, FileKind, RequestTotals};
use crate::file_directories::{self, FileDirectories, SideFileNames};

/// The files of one database, as all connections of this process see them. Never freed: SQLite keeps it.
pub struct PlacingVfs {
    places: FileDirectories,
    names: SideFileNames,
    registered_as: CString,
    base: *mut ffi::sqlite3_vfs,
    /// Totals of all connections.
    pub counts: RequestTotals,
    failure: Mutex<Option<String>>,
}

// SAFETY: `base` is SQLite's own VFS `unix`, which is never freed and may be used by any thread.
unsafe impl Send for PlacingVfs {}
// SAFETY: as above; all else is `Sync`.
unsafe impl Sync for PlacingVfs {}

static REGISTERED: Mutex<Vec<&'static PlacingVfs>> = Mutex::new(Vec::new());

impl PlacingVfs {
    /// The VFS of these directories, made if this is the first time.
    pub fn of(places: &FileDirectories) -> &'static Self {
        let mut registered = REGISTERED.lock().expect("no panic under the lock");
        if let Some(known) = registered.iter().find(|known| known.places == *places) {
            return known;
        }
        let made = Self::register(places, registered.len());
        registered.push(made);
        file_directories::redirect_unix_calls(made.base);
        made
    }

    /// The name by which connections ask for it.
    pub fn name(&self) -> &CStr {
        &self.registered_as
    }

    /// Where its files are.
    pub fn places(&self) -> &FileDirectories {
        &self.places
    }

    /// The last request that the operating system refused, if any.
    pub fn failure(&self) -> Option<String> {
        self.failure
            .lock()
            .expect("no panic under the lock")
            .clone()
    }

    pub(crate) fn note_failure(&self, failure: String) {
        *self.failure.lock().expect("no panic under the lock") = Some(failure);
    }

    fn register(places: &FileDirectories, number: usize) -> &'static Self {
        if number == 0 {
            forbid_uris();
        }
        // SAFETY: the name ends in zero; SQLite initialises itself first.
        let base = unsafe { ffi::sqlite3_vfs_find(c"unix".as_ptr()) };
        let vfs: &'static Self = Box::leak(Box::new(Self {
            places: places.clone(),
            names: SideFileNames::new(places),
            registered_as: CString::new(format!("tierwise-{number}")).expect("has no zero byte"),
            base,
            counts: RequestTotals::default(),
            failure: Mutex::new(None),
        }));
        // SAFETY: `base` is the bundled SQLite's own and always there. Of its methods, those copied here
        // without a change ignore their first argument.
        let mut shim = unsafe { *base };
        shim.iVersion = 2;
        shim.szOsFile += counted_file::SIZE as c_int;
        shim.pNext = ptr::null_mut();
        shim.zName = vfs.registered_as.as_ptr();
        shim.pAppData = ptr::from_ref(vfs).cast_mut().cast();
        shim.xOpen = Some(vfs_open);
        shim.xDelete = Some(delete);
        shim.xAccess = Some(access);
        // SAFETY: the structure and all that it points to live as long as the process.
        let registered = unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(shim)), 0) };
        assert_eq!(
            registered,
            ffi::SQLITE_OK,
            "registering a VFS takes no resources"
        );
        vfs
    }
}

/// Let no statement name a file by a URI, whose `vfs=unix` would get around this VFS. Rusqlite allows URIs.
fn forbid_uris() {
    // SAFETY: the option takes one integer; the call comes before SQLite's first use, which it checks.
    let status = unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_URI, 0 as c_int) };
    assert_eq!(
        status,
        ffi::SQLITE_OK,
        "the first use of SQLite in this process"
    );
}

/// Where the file called `name` is by the rules of any database of this process, if it is elsewhere.
pub(crate) fn moved_file(name: &CStr) -> Option<&'static CStr> {
    let registered = REGISTERED.lock().expect("no panic under the lock");
    registered.iter().find_map(|vfs| vfs.names.moved(name))
}

/// # Safety
/// `shim` is one that [`PlacingVfs::register`] made.
unsafe fn vfs_of(shim: *mut ffi::sqlite3_vfs) -> &'static PlacingVfs {
    // SAFETY: by the caller's word `pAppData` is a leaked `Vfs`.
    unsafe { &*(*shim).pAppData.cast::<PlacingVfs>() }
}

unsafe extern "C" fn vfs_open(
    shim: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite calls with the VFS that it was given, and with a name that ends in zero, or none.
    let (vfs, asked) = unsafe {
        (
            vfs_of(shim),
            (!name.is_null()).then(|| CStr::from_ptr(name)),
        )
    };
    let (name, flags) = match asked {
        None => (vfs.names.next_temp(), flags),
        // Parameters of a URI stand behind the name's end, and only behind that of the name asked for.
        Some(asked) => {
            let name = vfs.names.moved(asked).unwrap_or(asked);
            if !vfs.places.hold(name) {
                vfs.note_failure(format!(
                    "{}: a statement may open no files but the database's",
                    name.to_string_lossy()
                ));
                return ffi::SQLITE_CANTOPEN;
            }
            (name.to_owned(), flags & !ffi::SQLITE_OPEN_URI)
        }
    };
    // SAFETY: SQLite gives `szOsFile` bytes at `file`; `base` is a VFS.
    unsafe {
        counted_file::open_counted_file(
            vfs,
            vfs.base,
            double_terminated(&name),
            file,
            (file_kind(flags), flags),
            flags_out,
        )
    }
}

/// SQLite looks for parameters behind the end of some names: another zero says that there are none.
fn double_terminated(name: &CStr) -> Box<[u8]> {
    let mut bytes = name.to_bytes_with_nul().to_vec();
    bytes.push(0);
    bytes.into()
}

fn file_kind(flags: c_int) -> FileKind {
    if flags & ffi::SQLITE_OPEN_WAL != 0 {
        FileKind::Log
    } else if flags & (ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_SUPER_JOURNAL) != 0 {
        FileKind::Doublewrite
    } else if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
        FileKind::Data
    } else {
        FileKind::Temp
    }
}

/// Deletes a log in another directory durably before anything else is done. Where all files are in one
/// directory, SQLite leaves that to the file system, which keeps the order of its changes. But on another
/// file system a power cut can bring back a journal that is older than the content of the database file by
/// then, and SQLite would undo with it the commits since.
unsafe extern "C" fn delete(
    shim: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    sync: c_int,
) -> c_int {
    // SAFETY: as in `open`; a file that is deleted has a name.
    unsafe {
        let vfs = vfs_of(shim);
        let (name, sync) = match vfs.names.moved(CStr::from_ptr(name)) {
            Some(moved) => (moved.as_ptr(), 1),
            None => (name, sync),
        };
        let method = (*vfs.base).xDelete.expect("the VFS unix has all methods");
        method(vfs.base, name, sync)
    }
}

unsafe extern "C" fn access(
    shim: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    flags: c_int,
    answer: *mut c_int,
) -> c_int {
    // SAFETY: as in `delete`.
    unsafe {
        let vfs = vfs_of(shim);
        let name = vfs
            .names
            .moved(CStr::from_ptr(name))
            .map_or(name, CStr::as_ptr);
        let method = (*vfs.base).xAccess.expect("the VFS unix has all methods");
        method(vfs.base, name, flags, answer)
    }
}
