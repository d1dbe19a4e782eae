//! A program whose calls are known, under a real kernel.

use std::collections::HashMap;
use std::ffi::CString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::EventKind;
use crate::capture::{Capture, Options};

/// Blocks that the program writes, of 4,096 bytes.
const BLOCKS: usize = 64;

/// A directory that is removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("tierwise-capture-{}", std::process::id()));
        fs::create_dir(&path).expect("a new directory");
        Self(path.canonicalize().expect("it exists"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Mounts tracefs for the calling thread, and those it starts, alone: it goes with them. None says why not.
fn mount_tracefs(on: &Path) -> Result<(), String> {
    let text = |text: &str| CString::new(text).expect("no zero in it");
    let refused = || std::io::Error::last_os_error().to_string();
    // SAFETY: takes no pointers.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(refused());
    }
    let (none, root, kind) = (text("none"), text("/"), text("tracefs"));
    let on = text(&on.to_string_lossy());
    let flags = libc::MS_REC | libc::MS_PRIVATE;
    let null = std::ptr::null();
    // SAFETY: all texts live and end with a zero; the rest may be null.
    let private = unsafe { libc::mount(null, root.as_ptr(), null, flags, null.cast()) };
    // SAFETY: as above.
    let mounted = unsafe { libc::mount(none.as_ptr(), on.as_ptr(), kind.as_ptr(), 0, null.cast()) };
    if private != 0 || mounted != 0 {
        return Err(refused());
    }
    Ok(())
}

#[test]
fn the_calls_of_a_program_are_all_there() {
    // On a thread of its own, whose mounts end with it.
    thread::spawn(|| {
        let scratch = Scratch::new();
        let tracefs = scratch.0.join("tracefs");
        fs::create_dir(&tracefs).expect("a new directory");
        match mount_tracefs(&tracefs) {
            Ok(()) => trace_a_copy(&scratch.0, tracefs),
            Err(reason) => eprintln!("skipped: tracefs cannot be mounted: {reason}"),
        }
    })
    .join()
    .expect("no panic");
}

fn trace_a_copy(scratch: &Path, tracefs: PathBuf) {
    let script = format!("read x; exec dd if=/dev/zero of=copy bs=4096 count={BLOCKS} conv=fsync");
    let mut program = Command::new("sh")
        .args(["-c", &script])
        .current_dir(scratch)
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("there is a shell");
    let instance = format!("tierwise-test-{}", std::process::id());
    let options = Options {
        tracefs: tracefs.clone(),
        instance: instance.clone(),
        pids: vec![program.id() as i32],
        buffer_bytes: 1 << 20,
        poll: Duration::from_millis(20),
        clients: false,
        ignore_pids: Vec::new(),
    };
    let mut capture = Capture::attach(options).expect("we may trace");
    capture.begin().expect("we may trace");
    program
        .stdin
        .take()
        .expect("piped")
        .write_all(b"\n")
        .expect("it reads");
    program.wait().expect("it ends");
    let burst = capture.end().expect("we may trace").expect("it was begun");
    assert_eq!(burst.lost_events, 0);
    let mut heard = Heard::default();
    let tid = program.id() as i32;
    let decoded = burst.decode(&capture.decoder(), |event| {
        if event.tid == tid {
            heard.hear(event.kind);
        }
    });
    let copy = scratch.join("copy").to_string_lossy().into_owned();
    assert_eq!(heard.written.get(&copy), Some(&(BLOCKS * 4096)));
    assert_eq!(heard.synced, [copy]);
    assert!(heard.ended);
    assert!(decoded.opens > 0);
    assert_eq!(decoded.unresolved_opens, 0);
    drop(capture);
    let left = fs::read_dir(tracefs.join("instances"))
        .expect("mounted")
        .flatten();
    let ours = left.filter(|entry| entry.file_name().to_string_lossy().starts_with(&instance));
    assert_eq!(ours.count(), 0);
}

/// What a thread did to files, by their paths.
#[derive(Default)]
struct Heard {
    files: HashMap<u64, String>,
    call: Option<(u32, u64)>,
    written: HashMap<String, usize>,
    synced: Vec<String>,
    ended: bool,
}

impl Heard {
    fn hear(&mut self, kind: EventKind) {
        match kind {
            EventKind::Opened(opened) => {
                self.files.insert(opened.fd as u64, opened.path);
            }
            EventKind::Enter { number, arguments } => {
                self.call = Some((number, arguments[0]));
                // `dup2(from, to)`: dd opens its output so.
                if i64::from(number) == libc::SYS_dup2 {
                    let path = self.files.get(&arguments[0]).cloned();
                    self.files.extend(path.map(|path| (arguments[1], path)));
                }
            }
            EventKind::Exit { result, .. } => self.left(result),
            EventKind::Ended => self.ended = true,
            _ => {}
        }
    }

    fn left(&mut self, result: i64) {
        let Some((number, fd)) = self.call.take() else {
            return;
        };
        let Some(path) = self.files.get(&fd).cloned() else {
            return;
        };
        match i64::from(number) {
            libc::SYS_write => *self.written.entry(path).or_default() += result as usize,
            libc::SYS_fsync => self.synced.push(path),
            _ => {}
        }
    }
}
