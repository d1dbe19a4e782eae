//! Measures the cost of one event on this machine, for the thread that triggers it.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

const CALLS: u32 = 5_000;
const ROUNDS: u32 = 3;
const LOOPS: u32 = 3;

/// CPU time of one event, in ns: a loop of cheap calls with one event at each entry and each exit; 0 if this kernel
/// lacks the events.
///
/// Rounds with and without tracing alternate. The fastest of each counts, as other load only adds time. No thread
/// reads the events.
pub fn measure_event_cpu_ns(tracefs: &Path, instance: &str) -> f64 {
    let folder = tracefs.join("instances").join(format!("{instance}-cost"));
    let measured = fs::create_dir(&folder).and_then(|()| in_instance(&folder));
    // What cannot be removed now is removed by the next start, by its name.
    let _ = fs::remove_dir(&folder);
    measured.unwrap_or(0.0)
}

fn in_instance(folder: &Path) -> io::Result<f64> {
    // SAFETY: takes no pointers.
    let tid = unsafe { libc::gettid() };
    fs::write(folder.join("buffer_size_kb"), "64")?;
    fs::write(folder.join("set_event_pid"), tid.to_string())?;
    let switch = |way| folder.join(format!("events/syscalls/sys_{way}_lseek/enable"));
    let switches = [switch("enter"), switch("exit")];
    let set = |value: &str| {
        let mut files = switches.iter();
        files.try_for_each(|file: &PathBuf| fs::write(file, value))
    };
    let (mut plain_ns, mut traced_ns) = (u64::MAX, u64::MAX);
    // Each switch stops all cores for a moment, so several loops run between two switches.
    for _ in 0..ROUNDS {
        plain_ns = plain_ns.min(fastest_ns()?);
        set("1")?;
        traced_ns = traced_ns.min(fastest_ns()?);
        set("0")?;
    }
    Ok(traced_ns.saturating_sub(plain_ns) as f64 / f64::from(2 * CALLS))
}

fn fastest_ns() -> io::Result<u64> {
    let file = File::open("/dev/null")?;
    let loops = (0..LOOPS).map(|_| {
        let start = thread_ns();
        for _ in 0..CALLS {
            // SAFETY: takes no pointers; the descriptor is open.
            unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_CUR) };
        }
        thread_ns() - start
    });
    Ok(loops.min().unwrap_or(0))
}

fn thread_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a live structure.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}
