//! An open file: that of the VFS `unix`, behind a counter of its reads, writes and flushes.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, ptr};

use rusqlite::ffi::{self, sqlite3_file, sqlite3_int64, sqlite3_vfs};
use serde::Serialize;

use crate::placing_vfs::PlacingVfs;

/// The file object that SQLite holds. The base's file follows in the same piece of memory.
#[repr(C)]
struct CountedFile {
    methods: *const ffi::sqlite3_io_methods,
    vfs: &'static PlacingVfs,
    kind: FileKind,
    /// The base keeps a pointer to it while the file is open.
    name: Box<[u8]>,
}

/// Bytes of memory that this file takes before the base's.
pub(crate) const SIZE: usize = size_of::<CountedFile>();

/// Version 2 has no memory mapping, whose reads cannot be counted.
static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// Open a file of the base, behind this counter.
///
/// # Safety
/// `base` is a VFS, `file` points to the memory that it and this file need, and `name` ends in two zeros.
pub(crate) unsafe fn open_counted_file(
    vfs: &'static PlacingVfs,
    base: *mut sqlite3_vfs,
    name: Box<[u8]>,
    file: *mut sqlite3_file,
    (kind, flags): (FileKind, c_int),
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: by the caller's word. A file whose methods are null is not open, and will not be closed.
    unsafe {
        (*file).pMethods = ptr::null();
        let inner = base_file(file);
        let open = (*base).xOpen.expect("the VFS unix has all methods");
        let code = open(base, name.as_ptr().cast(), inner, flags, flags_out);
        if code == ffi::SQLITE_OK {
            let methods = ptr::from_ref(&METHODS);
            ptr::write(
                file.cast(),
                CountedFile {
                    methods,
                    vfs,
                    kind,
                    name,
                },
            );
        } else {
            note_error(
                vfs,
                kind,
                "open",
                code,
                io::Error::last_os_error().raw_os_error(),
            );
        }
        code
    }
}

/// # Safety
/// `file` is one of this VFS's, open or about to be.
unsafe fn base_file(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: SQLite allocated `SIZE` bytes and behind them what the base needs.
    unsafe { file.byte_add(SIZE) }
}

/// # Safety
/// `file` is an open file of this VFS.
unsafe fn file_parts<'a>(
    file: *mut sqlite3_file,
) -> (
    &'a CountedFile,
    &'a ffi::sqlite3_io_methods,
    *mut sqlite3_file,
) {
    // SAFETY: `open` wrote a `File` there, and the base opened its own behind it.
    unsafe {
        let inner = base_file(file);
        (&*file.cast::<CountedFile>(), &*(*inner).pMethods, inner)
    }
}

impl CountedFile {
    fn requests(&self) -> &'static FileRequests {
        self.vfs.counts.of(self.kind)
    }
}

/// Keep the error, in the words of SQLite and of the operating system.
fn note_error(vfs: &PlacingVfs, kind: FileKind, request: &str, code: c_int, errno: Option<i32>) {
    let system = match (code & 0xff, errno) {
        (ffi::SQLITE_FULL, _) => Some(libc::ENOSPC),
        (_, Some(0)) => None,
        (_, errno) => errno,
    };
    // SAFETY: SQLite gives a text that ends in zero and is never freed.
    let text = unsafe { CStr::from_ptr(ffi::sqlite3_errstr(code)) }.to_string_lossy();
    let system = system.map(|errno| format!(", {}", io::Error::from_raw_os_error(errno)));
    let kind = kind.name();
    vfs.note_failure(format!(
        "{request} of {kind}: {text}{}",
        system.unwrap_or_default()
    ));
}

/// # Safety
/// `file` is an open file of this VFS.
unsafe fn note_refused_request(file: *mut sqlite3_file, request: &str, code: c_int) {
    // SAFETY: by the caller's word; the control takes a pointer to a number.
    unsafe {
        let (outer, base, inner) = file_parts(file);
        let mut errno: c_int = 0;
        let control = base.xFileControl.expect("the VFS unix has all methods");
        control(
            inner,
            ffi::SQLITE_FCNTL_LAST_ERRNO,
            ptr::from_mut(&mut errno).cast(),
        );
        note_error(outer.vfs, outer.kind, request, code, Some(errno));
    }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite passes an open file, and none of it is used after this.
    unsafe {
        let (_, base, inner) = file_parts(file);
        let code = base.xClose.expect("the VFS unix has all methods")(inner);
        ptr::drop_in_place(file.cast::<CountedFile>());
        code
    }
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    into: *mut c_void,
    size: c_int,
    at: sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite passes an open file and memory of that size.
    unsafe {
        let (outer, base, inner) = file_parts(file);
        let code = base.xRead.expect("the VFS unix has all methods")(inner, into, size, at);
        outer.requests().reads.add(1);
        match code {
            ffi::SQLITE_OK => outer.requests().read_bytes.add(size as u64),
            ffi::SQLITE_IOERR_SHORT_READ => {}
            refused => note_refused_request(file, "read", refused),
        }
        code
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    from: *const c_void,
    size: c_int,
    at: sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite passes an open file and memory of that size.
    unsafe {
        let (outer, base, inner) = file_parts(file);
        let code = base.xWrite.expect("the VFS unix has all methods")(inner, from, size, at);
        outer.requests().writes.add(1);
        match code {
            ffi::SQLITE_OK => outer.requests().written_bytes.add(size as u64),
            refused => note_refused_request(file, "write", refused),
        }
        code
    }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: SQLite passes an open file.
    unsafe {
        let (outer, base, inner) = file_parts(file);
        let code = base.xSync.expect("the VFS unix has all methods")(inner, flags);
        outer.requests().syncs.add(1);
        if code != ffi::SQLITE_OK {
            note_refused_request(file, "flush", code);
        }
        code
    }
}

/// Methods that the base answers alone.
macro_rules! passed_on {
    ($($name:ident, $method:ident, ($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        unsafe extern "C" fn $name(file: *mut sqlite3_file $(, $argument: $type)*) $(-> $result)? {
            // SAFETY: SQLite passes an open file, and what the base's method asks for.
            unsafe {
                let (_, base, inner) = file_parts(file);
                base.$method.expect("the VFS unix has all methods")(inner $(, $argument)*)
            }
        }
    )*};
}

passed_on! {
    truncate, xTruncate, (size: sqlite3_int64) -> c_int;
    file_size, xFileSize, (size: *mut sqlite3_int64) -> c_int;
    lock, xLock, (level: c_int) -> c_int;
    unlock, xUnlock, (level: c_int) -> c_int;
    check_reserved_lock, xCheckReservedLock, (answer: *mut c_int) -> c_int;
    file_control, xFileControl, (operation: c_int, argument: *mut c_void) -> c_int;
    sector_size, xSectorSize, () -> c_int;
    device_characteristics, xDeviceCharacteristics, () -> c_int;
    shm_map, xShmMap, (page: c_int, size: c_int, extend: c_int, at: *mut *mut c_void) -> c_int;
    shm_lock, xShmLock, (offset: c_int, count: c_int, flags: c_int) -> c_int;
    shm_barrier, xShmBarrier, ();
    shm_unmap, xShmUnmap, (delete: c_int) -> c_int;
}

// Counters of the files and caches of one database.

/// The purpose of a file; requests are counted by it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FileKind {
    Data,
    Log,
    Doublewrite,
    Temp,
}

impl FileKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Log => "log",
            Self::Doublewrite => "doublewrite",
            Self::Temp => "temp",
        }
    }
}

/// Requests to the operating system for the files of one kind.
#[derive(Debug, Default, Serialize)]
pub struct FileRequests {
    /// Read requests.
    pub reads: SharedCount,
    /// Bytes read.
    pub read_bytes: SharedCount,
    /// Write requests.
    pub writes: SharedCount,
    /// Bytes written.
    pub written_bytes: SharedCount,
    /// Flushes of a file.
    pub syncs: SharedCount,
}

/// Totals since the first connection of this process.
#[derive(Debug, Default, Serialize)]
pub struct RequestTotals {
    /// The database file.
    pub data: FileRequests,
    /// The write-ahead log.
    pub log: FileRequests,
    /// The rollback journal.
    pub doublewrite: FileRequests,
    /// Temporary files.
    pub temp: FileRequests,
    /// Pages found in the cache of a connection. Handed in at the end of each transaction.
    pub cache_hits: SharedCount,
    /// Pages that a connection did not have in its cache.
    pub cache_misses: SharedCount,
    /// Transactions committed that had written.
    pub commits: SharedCount,
}

impl RequestTotals {
    pub(crate) fn of(&self, kind: FileKind) -> &FileRequests {
        match kind {
            FileKind::Data => &self.data,
            FileKind::Log => &self.log,
            FileKind::Doublewrite => &self.doublewrite,
            FileKind::Temp => &self.temp,
        }
    }
}

/// A number that several threads count up.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub struct SharedCount(AtomicU64);

impl SharedCount {
    /// The number now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }
}
