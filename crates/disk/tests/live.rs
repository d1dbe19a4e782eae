//! The live disk against the same model on virtual time. Needs root and FUSE; says so and passes without.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{ffi::CString, thread};

use tierwise_device::{Op, Profile, Request};

const PROFILE: &str = include_str!("../../../python/tierwise/profiles/hdd-7k2.toml");
const REQUESTS: usize = 250;
const BLOCK: usize = 4096;
const SIZE: u64 = 64 << 30;
const SEED: u64 = 3;

/// Runs until one is undisturbed: what else the machine does can only make requests later.
const ATTEMPTS: usize = 8;

/// Share of requests that may miss a revolution because the reader was late, and what that may add to the mean:
/// a revolution is about 0.7 of it.
const LATE_SHARE: f64 = 0.1;
const LATE_ERROR: f64 = 0.7 * LATE_SHARE;

/// A buffer as direct I/O wants it.
#[repr(align(4096))]
struct Block([u8; BLOCK]);

/// Offsets all over the disk, the same in each run.
fn offsets() -> Vec<u64> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 20) % (SIZE / BLOCK as u64) * BLOCK as u64
    };
    (0..REQUESTS).map(|_| next()).collect()
}

/// Times of reads, in µs, each sent when the one before is done.
fn simulated() -> Vec<f64> {
    let mut device = Profile::parse(PROFILE, "hdd-7k2.toml")
        .expect("a valid profile")
        .build(SEED);
    let (mut now, mut completions, mut times) = (0, Vec::new(), Vec::new());
    for (id, offset) in (0..).zip(offsets()) {
        let request = Request {
            op: Op::Read,
            sector: offset / 512,
            sectors: (BLOCK / 512) as u32,
            fua: false,
        };
        device.submit(now, id, request);
        completions.clear();
        while completions.is_empty() {
            device.advance(
                device.next_event().expect("a request is inside"),
                &mut completions,
            );
        }
        times.push((completions[0].at - now) as f64 / 1e3);
        now = completions[0].at;
    }
    times
}

fn live(directory: &Path) -> Vec<f64> {
    let mount = directory.join("mount");
    fs::create_dir(&mount).expect("a directory");
    let config = format!(
        r#"{{"name": "live", "mount": {mount:?}, "socket": {:?}, "profile": {PROFILE:?},
            "profile_file": "hdd-7k2.toml", "seed": {SEED}, "path_us": 10, "spin_us": 60, "library": {{}},
            "precondition": "fresh", "lies_about_flush": false, "write_back_s": 2,
            "partitions": [{{"name": "disk", "size_bytes": {SIZE}}}]}}"#,
        directory.join("control")
    );
    let server = thread::spawn(move || tierwise_disk::serve(&config));
    let image = mount.join("disk.img");
    let deadline = Instant::now() + Duration::from_secs(10);
    while !image.exists() {
        assert!(
            Instant::now() < deadline && !server.is_finished(),
            "the server does not start"
        );
        thread::sleep(Duration::from_millis(5));
    }
    let times = read_times(
        &OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECT)
            .open(image)
            .expect("image"),
    );
    let path = CString::new(mount.to_str().expect("a plain path")).expect("a plain path");
    // SAFETY: the pointer is to a live string.
    assert_eq!(unsafe { libc::umount2(path.as_ptr(), 0) }, 0, "unmounting");
    server
        .join()
        .expect("no panic")
        .expect("the server ends well");
    times
}

fn read_times(image: &File) -> Vec<f64> {
    let mut block = Box::new(Block([0; BLOCK]));
    let read = |offset| {
        let start = Instant::now();
        image.read_exact_at(&mut block.0, offset).expect("a read");
        start.elapsed().as_secs_f64() * 1e6
    };
    offsets().into_iter().map(read).collect()
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

/// Mean error of a run, and how many requests took their model's time within 300 µs.
fn compare(live: &[f64], simulated: &[f64]) -> (f64, usize) {
    // The first depends on where the platter stood; from then on each follows from the one before.
    let pairs = live.iter().zip(simulated).skip(1);
    let near = pairs
        .filter(|(live, model)| (**live - **model).abs() < 300.0)
        .count();
    (mean(live) / mean(simulated) - 1.0, near)
}

#[test]
fn a_live_disk_takes_the_time_that_its_model_takes() {
    // SAFETY: takes nothing.
    let root = unsafe { libc::geteuid() } == 0;
    if !root || !Path::new("/dev/fuse").exists() {
        eprintln!("skipped: needs root and /dev/fuse");
        return;
    }
    // A reader who waits for a processor misses revolutions. SAFETY: takes no pointers.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
    let simulated = simulated();
    let mut error = f64::INFINITY;
    let mut near = 0;
    for attempt in 0..ATTEMPTS {
        let directory =
            std::env::temp_dir().join(format!("tierwise-live-{}-{attempt}", std::process::id()));
        fs::create_dir(&directory).expect("a directory");
        (error, near) = compare(&live(&directory), &simulated);
        fs::remove_dir_all(&directory).expect("removal");
        eprintln!(
            "mean off by {:.1} %, {near} of {REQUESTS} within 300 µs",
            100.0 * error
        );
        if error.abs() < LATE_ERROR && near as f64 >= (1.0 - LATE_SHARE) * REQUESTS as f64 {
            return;
        }
    }
    panic!(
        "mean off by {:.1} %, {near} of {REQUESTS} within 300 µs of the model",
        100.0 * error
    );
}
