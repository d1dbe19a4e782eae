//! A program whose calls are known, under a real kernel.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::trace_event::TraceEventKind;
use crate::tracer::{BurstTracer, TracerStorage, why_tracing_impossible};

/// Blocks that the program writes, of 4,096 bytes.
const BLOCKS: usize = 64;

/// What the C library's `dup2(from, to)` calls: generic kernels have no `dup2`.
#[cfg(target_arch = "x86_64")]
const DUPLICATE: libc::c_long = libc::SYS_dup2;
#[cfg(not(target_arch = "x86_64"))]
const DUPLICATE: libc::c_long = libc::SYS_dup3;

/// A directory with the file that the program writes.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("tierwise-tracer-{}", std::process::id()));
        fs::create_dir(&path).expect("a new directory");
        Self(path.canonicalize().expect("it exists"))
    }

    fn copy(&self) -> PathBuf {
        self.0.join("copy")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // One by one: what is not ours would be kept, not removed.
        let _ = fs::remove_file(self.copy());
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn the_calls_of_a_program_are_all_there() {
    match why_tracing_impossible() {
        None => trace_a_copy(&Scratch::new()),
        Some((reason, _)) => eprintln!("skipped: {reason}"),
    }
}

fn trace_a_copy(scratch: &Scratch) {
    let script = format!("read x; exec dd if=/dev/zero of=copy bs=4096 count={BLOCKS} conv=fsync");
    let mut program = Command::new("sh")
        .args(["-c", &script])
        .current_dir(&scratch.0)
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("there is a shell");
    let places = TracerStorage {
        buffer_bytes: 1 << 20,
        spool_dir: scratch.0.clone(),
        out: scratch.0.clone(),
    };
    let pids = vec![program.id() as i32];
    let mut tracer = BurstTracer::attach(&places, pids, Vec::new()).expect("we may trace");
    tracer.begin().expect("we may trace");
    program
        .stdin
        .take()
        .expect("piped")
        .write_all(b"\n")
        .expect("it reads");
    program.wait().expect("it ends");
    let burst = tracer.end().expect("we may trace").expect("it was begun");
    assert_eq!(burst.lost_events, 0);
    let mut heard = Heard::default();
    let tid = program.id() as i32;
    let decoded = burst.decode(|event| {
        if event.tid == tid {
            heard.hear(event.kind);
        }
    });
    let copy = scratch.copy().to_string_lossy().into_owned();
    assert_eq!(heard.written.get(&copy), Some(&(BLOCKS * 4096)));
    assert_eq!(heard.synced, [copy]);
    assert!(heard.ended);
    assert!(decoded.opens > 0);
    assert_eq!(decoded.unresolved_opens, 0);
}

#[derive(Default)]
struct Heard {
    files: HashMap<u64, String>,
    call: Option<(u32, u64)>,
    written: HashMap<String, usize>,
    synced: Vec<String>,
    ended: bool,
}

impl Heard {
    fn hear(&mut self, kind: TraceEventKind) {
        match kind {
            TraceEventKind::Opened { fd, path } => {
                self.files.insert(fd as u64, path);
            }
            TraceEventKind::Enter { number, arguments } => {
                self.call = Some((number, arguments[0]));
                // dd opens its output so.
                if libc::c_long::from(number) == DUPLICATE {
                    let path = self.files.get(&arguments[0]).cloned();
                    self.files.extend(path.map(|path| (arguments[1], path)));
                }
            }
            TraceEventKind::Exit { result, .. } => self.left(result),
            TraceEventKind::Ended => self.ended = true,
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
