//! Each kind of file is where it was told, and every request for it is counted.

use std::ffi::{CStr, c_char, c_int};
use std::mem::transmute;
use std::path::PathBuf;
use std::sync::Mutex;

use crate::Home;
use rusqlite::{Connection, OpenFlags, ffi};
use tierwise_sqlite::PlacingVfs;

const PAGE_BYTES: u64 = 4096;
const WAL_HEADER_BYTES: u64 = 32;
const WAL_FRAME_BYTES: u64 = 24 + PAGE_BYTES;

fn names(home: &Home) -> Vec<String> {
    home.files().into_iter().map(|(name, _)| name).collect()
}

#[test]
fn a_write_ahead_log_and_its_index_are_apart_from_the_data() {
    let home = Home::new("wal");
    let database = home.open(&[("journal_mode", "wal")]);
    database.query("CREATE TABLE t (i INTEGER)").unwrap();
    assert_eq!(
        names(&home),
        [
            "data/tierwise.db",
            "log/tierwise.wal",
            "system/tierwise.shm"
        ]
    );
    assert!(home.size("log/tierwise.wal") > PAGE_BYTES);

    let size = home.size("log/tierwise.wal");
    database.checkpoint().unwrap();
    assert_eq!(home.size("data/tierwise.db"), 2 * PAGE_BYTES);
    database.query("INSERT INTO t VALUES (1)").unwrap();
    assert_eq!(home.size("log/tierwise.wal"), size, "written over");

    database.close();
    assert_eq!(names(&home), ["data/tierwise.db"]);
}

#[test]
fn a_rollback_journal_is_apart_from_the_data() {
    for (mode, kept) in [
        ("delete", None),
        ("truncate", Some(0)),
        ("persist", Some(PAGE_BYTES)),
    ] {
        let home = Home::new(mode);
        let database = home.open(&[("journal_mode", mode)]);
        database.query("CREATE TABLE t (i INTEGER)").unwrap();
        database.query("INSERT INTO t VALUES (1)").unwrap();
        let journal = home.path().join("doublewrite/tierwise.journal");
        let size = journal.metadata().ok().map(|file| file.len());
        assert_eq!(size.is_some(), kept.is_some(), "{mode}");
        assert!(size >= kept, "{mode}: {size:?}");
        assert!(home.size("data/tierwise.db") > 0);
        let counts = database.counts();
        assert!(counts.doublewrite.written_bytes.get() > PAGE_BYTES);
        assert!(counts.doublewrite.syncs.get() > 0);
        assert_eq!(counts.log.writes.get(), 0);
    }
}

#[test]
fn what_leaves_memory_is_written_to_the_temporary_place() {
    let home = Home::new("temp");
    let database = home.open(&[
        ("journal_mode", "wal"),
        ("cache_size", "10"),
        ("cache_spill", "1"),
    ]);
    let query = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) \
                 SELECT i FROM (SELECT i, random() AS r FROM n ORDER BY r) LIMIT 1";
    database
        .query("CREATE TEMP TABLE big (i INTEGER, body TEXT)")
        .unwrap();
    database
        .query("INSERT INTO big SELECT 1, hex(zeroblob(2000)) FROM (VALUES (1), (2), (3))")
        .unwrap();
    database
        .query("INSERT INTO big SELECT a.i, a.body FROM big a, big b, big c, big d, big e, big f, big g")
        .unwrap();
    database.query(query).unwrap();
    let temp = &database.counts().temp;
    assert!(temp.written_bytes.get() > 100 * PAGE_BYTES);
    assert!(temp.reads.get() > 0);
    let open = open_files()
        .into_iter()
        .filter(|path| path.to_string_lossy().contains(".temp"));
    let open: Vec<_> = open.filter(|path| path.starts_with(home.path())).collect();
    assert!(!open.is_empty());
    assert!(
        open.iter()
            .all(|path| path.starts_with(home.path().join("temp"))),
        "{open:?}"
    );
    assert!(
        names(&home).iter().all(|name| !name.starts_with("temp/")),
        "deleted while it is open"
    );
}

fn open_files() -> Vec<PathBuf> {
    let links = std::fs::read_dir("/proc/self/fd").unwrap();
    links
        .filter_map(|link| link.unwrap().path().read_link().ok())
        .collect()
}

#[test]
fn requests_are_counted_exactly() {
    let home = Home::new("counts");
    let database = home.open(&[
        ("journal_mode", "wal"),
        ("synchronous", "full"),
        ("wal_autocheckpoint", "0"),
    ]);
    let log = &database.counts().log;
    let data = &database.counts().data;
    database.query("CREATE TABLE t (i INTEGER)").unwrap();
    let (syncs, commits) = (log.syncs.get(), database.counts().commits.get());
    for _ in 0..10 {
        database.query("INSERT INTO t VALUES (1)").unwrap();
    }
    assert_eq!(database.counts().commits.get() - commits, 10);
    assert_eq!(log.syncs.get() - syncs, 10);
    assert_eq!(log.written_bytes.get(), home.size("log/tierwise.wal"));
    assert_eq!(
        (log.written_bytes.get() - WAL_HEADER_BYTES) % WAL_FRAME_BYTES,
        0
    );

    let (writes, syncs) = (data.writes.get(), data.syncs.get());
    database.checkpoint().unwrap();
    assert_eq!(data.writes.get() - writes, 2);
    assert_eq!(data.syncs.get() - syncs, 1);
    assert!(database.counts().cache_hits.get() > 0);
}

#[test]
fn one_vfs_serves_all_connections_to_the_same_places() {
    let home = Home::new("shared");
    let first = PlacingVfs::of(&home.places());
    assert!(std::ptr::eq(first, PlacingVfs::of(&home.places())));
    let other = Home::new("other");
    assert_ne!(first.name(), PlacingVfs::of(&other.places()).name());
    assert_eq!(first.places(), &home.places());
}

#[test]
fn two_databases_are_kept_apart() {
    let (first, second) = (Home::new("first"), Home::new("second"));
    let (a, b) = (
        first.open(&[("journal_mode", "wal")]),
        second.open(&[("journal_mode", "wal")]),
    );
    a.query("CREATE TABLE a (i INTEGER)").unwrap();
    b.query("CREATE TABLE b (i INTEGER)").unwrap();
    a.query("SELECT * FROM b").unwrap_err();
    assert_eq!(names(&first), names(&second));
}

#[test]
fn a_directory_with_a_link_in_its_path_will_do() {
    let home = Home::new("link");
    let link = home.path().join("link");
    std::os::unix::fs::symlink(home.path().join("data"), &link).unwrap();
    let json = home.address_json(&[("journal_mode", "wal")]).replace(
        home.path().join("data").to_str().unwrap(),
        link.to_str().unwrap(),
    );
    let database = tierwise_sqlite::OpenDatabase::open(
        &tierwise_sqlite::DatabaseAddress::parse(&json).unwrap(),
    )
    .unwrap();
    database.query("CREATE TABLE t (i INTEGER)").unwrap();
    assert!(home.size("log/tierwise.wal") > 0);
    assert!(home.size("system/tierwise.shm") > 0);
    std::fs::remove_file(link).unwrap();
}

#[test]
fn a_uri_is_no_way_around_the_places() {
    let home = Home::new("uri");
    let planted = home.path().join("planted");
    let database = home.open(&[]);
    for statement in ["ATTACH '{}' AS other", "VACUUM INTO '{}'"] {
        for parameters in ["?vfs=unix", "?vfs=unix-none&mode=rwc", ""] {
            let uri = format!("file:{}{parameters}", planted.display());
            let refused = database.query(&statement.replace("{}", &uri)).unwrap_err();
            assert!(refused.message.contains("unable to open"), "{refused:?}");
        }
    }
    assert!(!planted.exists());
}

#[test]
fn a_device_that_refuses_is_named_with_its_role() {
    let home = Home::new("refused");
    let database = home.open(&[("journal_mode", "delete")]);
    std::fs::remove_dir(home.path().join("doublewrite")).unwrap();
    let failure = database.query("CREATE TABLE t (i INTEGER)").unwrap_err();
    let named = "unable to open database file (open of doublewrite: unable to open database file, ";
    assert!(failure.message.starts_with(named), "{}", failure.message);
    assert!(
        database
            .refused()
            .unwrap()
            .contains("No such file or directory")
    );
    std::fs::create_dir(home.path().join("doublewrite")).unwrap();
}

static SYNCED: Mutex<Vec<String>> = Mutex::new(Vec::new());
type OpenDirectory = unsafe extern "C" fn(*const c_char, *mut c_int) -> c_int;
static ORIGINAL: Mutex<Option<OpenDirectory>> = Mutex::new(None);

unsafe extern "C" fn open_directory(file: *const c_char, descriptor: *mut c_int) -> c_int {
    // SAFETY: SQLite passes a path that ends in zero.
    let path = unsafe { CStr::from_ptr(file) }.to_str().unwrap().to_owned();
    SYNCED.lock().unwrap().push(path);
    let original = ORIGINAL.lock().unwrap().unwrap();
    // SAFETY: as SQLite would have called it.
    unsafe { original(file, descriptor) }
}

#[test]
fn the_directory_of_the_journal_is_flushed_when_it_comes_and_goes() {
    let home = Home::new("directory");
    let vfs = PlacingVfs::of(&home.places());
    // SAFETY: the VFS is SQLite's own, and the types are those that it has for this call.
    unsafe {
        let unix = ffi::sqlite3_vfs_find(c"unix".as_ptr());
        let name = c"openDirectory".as_ptr();
        let original = (*unix).xGetSystemCall.unwrap()(unix, name);
        *ORIGINAL.lock().unwrap() = Some(transmute::<ffi::sqlite3_syscall_ptr, OpenDirectory>(
            original,
        ));
        let ours = transmute::<OpenDirectory, ffi::sqlite3_syscall_ptr>(open_directory);
        (*unix).xSetSystemCall.unwrap()(unix, name, ours);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection =
        Connection::open_with_flags_and_vfs(home.places().database(), flags, vfs.name()).unwrap();
    connection
        .execute_batch("PRAGMA synchronous = full; CREATE TABLE t (i INTEGER)")
        .unwrap();
    let journal = home
        .path()
        .join("doublewrite/tierwise.journal")
        .display()
        .to_string();
    let synced = SYNCED.lock().unwrap();
    let of_this: Vec<_> = synced
        .iter()
        .filter(|path| path.contains("-directory/"))
        .collect();
    assert_eq!(of_this, [&journal, &journal]);
}
