//! The directory of a recording, and other users of the machine who would have it elsewhere.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::process::geteuid;
use tempfile::TempDir;

use super::*;

const NOBODY: u32 = 65534;
/// Of a recorder that was killed.
const NAME: &str = "tierwise-record-1";
const ROUNDS: u32 = 300;

/// Variables of the environment belong to all threads.
static ENVIRONMENT: Mutex<()> = Mutex::new(());

/// A directory that every user can enter, with a ledger in it; removed when it is dropped.
struct Home {
    path: PathBuf,
    _folder: TempDir,
    _environment: MutexGuard<'static, ()>,
}

impl Home {
    fn new() -> Self {
        let environment = ENVIRONMENT
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut open = tempfile::Builder::new();
        let folder = open.permissions(Permissions::from_mode(0o755)).tempdir();
        let folder = folder.unwrap();
        let path = folder.path().to_owned();
        fs::create_dir(path.join("run")).unwrap();
        // SAFETY: the lock is held; no other test of this crate reads or writes these variables.
        unsafe {
            std::env::set_var("TIERWISE_RUN_DIR", path.join("run"));
            std::env::remove_var("SUDO_UID");
            std::env::remove_var("SUDO_GID");
        }
        Self {
            path,
            _folder: folder,
            _environment: environment,
        }
    }

    /// None where the test runs as another user, who cannot make what it needs.
    fn of_root() -> Option<Self> {
        geteuid().is_root().then(Self::new)
    }

    fn folder(&self, name: &str, owner: u32, mode: u32) -> PathBuf {
        let folder = self.path.join(name);
        fs::create_dir(&folder).unwrap();
        chown(&folder, Some(owner), Some(owner)).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        folder
    }
}

fn shown(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

fn refusal(out: &Path) -> String {
    UnfinishedRecording::begin(out).err().unwrap().message
}

#[test]
fn a_recording_gets_its_name_last_and_leaves_nothing_when_it_is_given_up() {
    let home = Home::new();
    let (home, run) = (&home.path, home.path.join("run"));
    let begin = || UnfinishedRecording::begin(&home.join("out")).unwrap();
    let output = begin();
    fs::write(output.path().join("table"), "x").unwrap();
    assert_eq!((shown(home), shown(&run)), (2, 1));
    drop(output);
    assert_eq!((shown(home), shown(&run)), (1, 0));
    let output = begin();
    fs::write(output.path().join("table"), "x").unwrap();
    output.keep().unwrap();
    assert_eq!((shown(&home.join("out")), shown(&run)), (1, 0));
    assert!(refusal(&home.join("out")).ends_with("is not empty"));
}

#[test]
fn a_directory_in_which_others_rename_files_is_refused() {
    let Some(home) = Home::of_root() else {
        return;
    };
    let theirs = home.folder("theirs", NOBODY, 0o755);
    let open = home.folder("open", 0, 0o777);
    let (foreign, shared) = (theirs.display(), open.display());
    let expected = format!("{foreign}: belongs to user 65534");
    assert_eq!(refusal(&theirs.join("out")), expected);
    let expected = format!("{shared}: can be written by others");
    assert_eq!(refusal(&open.join("out")), expected);
    assert!(refusal(&theirs).ends_with("belongs to user 65534"));
    symlink(home.path.join("run"), open.join("link")).unwrap();
    std::os::unix::fs::lchown(open.join("link"), Some(NOBODY), None).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o1777)).unwrap();
    assert!(refusal(&open.join("link/out")).ends_with("is a link of another user"));
    let run = home.path.join("run");
    assert_eq!((shown(&theirs), shown(&open), shown(&run)), (0, 1, 0));
}

#[test]
fn a_name_that_another_user_gives_to_a_link_leads_nowhere() {
    let Some(home) = Home::of_root() else {
        return;
    };
    let theirs = home.folder("theirs", NOBODY, 0o755);
    let victim = home.folder("victim", 0, 0o755);
    fs::write(victim.join("secret"), "x").unwrap();
    fs::set_permissions(victim.join("secret"), Permissions::from_mode(0o640)).unwrap();
    // SAFETY: the lock of this home is held.
    unsafe {
        std::env::set_var("SUDO_UID", NOBODY.to_string());
        std::env::set_var("SUDO_GID", NOBODY.to_string());
    }
    let before = kept(&victim);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| swap(&theirs, &victim, &stop));
        for round in 0..ROUNDS {
            // It may fail, as its directory is moved away, but touches nothing else.
            if let Ok(output) = UnfinishedRecording::begin(&theirs.join(format!("out-{round}"))) {
                let _ = fs::write(output.path().join("table"), "x");
                let _ = output.keep();
            }
            if kept(&victim) != before {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(kept(&victim), before);
}

#[test]
fn a_dead_recorders_directory_is_not_removed_through_a_link() {
    let Some(home) = Home::of_root() else {
        return;
    };
    let theirs = home.folder("theirs", NOBODY, 0o755);
    let victim = home.folder("victim", 0, 0o755);
    fs::write(victim.join("secret"), "x").unwrap();
    let text = format!(
        r#"{{"kind": "directory", "name": "{NAME}", "facts": {{"path": "{}"}},
            "owner": {{"pid": 1, "start_ticks": 0, "boot_id": "another"}}}}"#,
        theirs.join(NAME).display()
    );
    let entry = home.path.join(format!("run/directory-{NAME}.json"));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| swap(&theirs, &victim, &stop));
        for _ in 0..ROUNDS {
            fs::write(&entry, &text).unwrap();
            let _ = fs::create_dir(theirs.join(NAME));
            crate::output::remove_killed_recordings().unwrap();
            if shown(&victim) == 0 {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(shown(&victim), 1);
}

/// Owners, modes and names of a directory and its files.
fn kept(folder: &Path) -> Vec<(OsString, u32, u32)> {
    let about = |path: &Path| {
        let found = fs::metadata(path).unwrap();
        (path.as_os_str().to_owned(), found.uid(), found.mode())
    };
    let files = fs::read_dir(folder).unwrap().flatten();
    let mut found: Vec<_> = files.map(|file| about(&file.path())).collect();
    found.sort();
    found.push(about(folder));
    found
}

/// As another user, gives the name of a recording in progress to a link to `victim`, again and again.
fn swap(theirs: &Path, victim: &Path, stop: &AtomicBool) {
    // SAFETY: the plain system call changes this thread alone, and takes no pointers.
    let status = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
    assert_eq!(status, 0);
    let (work, link) = (theirs.join(NAME), theirs.join("link"));
    for round in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let exchanged = renameat_with(CWD, &work, CWD, &link, RenameFlags::EXCHANGE);
        if exchanged.is_err() && !link.is_symlink() {
            let _ = fs::rename(&link, theirs.join(format!("aside-{round}")));
            let _ = symlink(victim, &link);
        }
    }
}
