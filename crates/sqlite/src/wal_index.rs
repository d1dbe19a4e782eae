//! The place of the write-ahead log's index, the file `-shm`.
//!
//! The VFS `unix` makes its name up, beside the database file, and asks no other VFS. But its system calls
//! can be replaced; these two change the name and call the original ones.

use std::ffi::{CStr, c_char, c_int};
use std::mem::transmute;
use std::sync::OnceLock;

use rusqlite::ffi;

use crate::vfs;

type Open = unsafe extern "C" fn(*const c_char, c_int, c_int) -> c_int;
type Unlink = unsafe extern "C" fn(*const c_char) -> c_int;

struct Calls {
    open: Open,
    unlink: Unlink,
}

static ORIGINAL: OnceLock<Calls> = OnceLock::new();

/// Replace the calls of the VFS `unix`, once for the process.
pub(crate) fn redirect(unix: *mut ffi::sqlite3_vfs) {
    ORIGINAL.get_or_init(|| {
        // SAFETY: `unix` is SQLite's own VFS, and SQLite gives these types to the calls of these names.
        unsafe {
            let original =
                |name: &CStr| (*unix).xGetSystemCall.expect("unix has it")(unix, name.as_ptr());
            let calls = Calls {
                open: transmute::<ffi::sqlite3_syscall_ptr, Open>(original(c"open")),
                unlink: transmute::<ffi::sqlite3_syscall_ptr, Unlink>(original(c"unlink")),
            };
            let replace = (*unix).xSetSystemCall.expect("unix has it");
            replace(
                unix,
                c"open".as_ptr(),
                transmute::<Open, ffi::sqlite3_syscall_ptr>(open),
            );
            replace(
                unix,
                c"unlink".as_ptr(),
                transmute::<Unlink, ffi::sqlite3_syscall_ptr>(unlink),
            );
            calls
        }
    });
}

fn original() -> &'static Calls {
    ORIGINAL.wait()
}

unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: SQLite passes a path that ends in zero.
    unsafe { (original().open)(moved(path), flags, mode) }
}

unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: SQLite passes a path that ends in zero.
    unsafe { (original().unlink)(moved(path)) }
}

/// # Safety
/// `path` ends in zero.
unsafe fn moved(path: *const c_char) -> *const c_char {
    // SAFETY: by the caller's word.
    vfs::moved(unsafe { CStr::from_ptr(path) }).map_or(path, CStr::as_ptr)
}
