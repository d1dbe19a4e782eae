//! The live disk against the same model on virtual time. Needs root and FUSE; says so and passes without.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::mem::{size_of, zeroed};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fmt, fs, thread};

use tierwise_device::{Op, Profile, Request};

const PROFILE: &str = include_str!("../../../../python/tierwise/data/devices/hdd-7k2.toml");
const REQUESTS: usize = 250;
const BLOCK: usize = 4096;
const SIZE: u64 = 64 << 30;
const SEED: u64 = 3;

/// Runs of which one must keep to its model: what else the machine does can only make requests later.
const ATTEMPTS: usize = 8;

/// Runs, if the machine proves disturbed, and how many disturbed ones may judge the disk together.
const DISTURBED_ATTEMPTS: usize = 24;
const ENOUGH_DISTURBED: usize = 4;

/// The share of late wake-ups from which a machine is disturbed: a request waits for three, and the next one feels it.
const DISTURBED_SHARE: f64 = 0.01;

/// Share of requests that may miss a revolution because the reader was late, and what that may add to the mean:
/// a revolution is about 0.7 of it.
const LATE_SHARE: f64 = 0.1;
const LATE_ERROR: f64 = 0.7 * LATE_SHARE;

/// The server answers long before that; a machine may be slow.
const START: Duration = Duration::from_secs(60);

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
        let request = Request::new(Op::Read, offset / 512, (BLOCK / 512) as u32);
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
    let server = thread::spawn(move || tierwise_disk::serve_device(&config));
    let image = mount.join("disk.img");
    let deadline = Instant::now() + START;
    while !image.exists() {
        if server.is_finished() {
            panic!("the server does not start: {:?}", server.join());
        }
        assert!(Instant::now() < deadline, "the server does not start");
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

/// How well times keep to the model's.
struct Verdict {
    mean_error: f64,
    /// Requests that took their model's time within 300 µs.
    near: usize,
}

impl Verdict {
    fn of(times: &[f64], simulated: &[f64]) -> Self {
        // The first depends on where the platter stood; from then on each follows from the one before.
        let pairs = times.iter().zip(simulated).skip(1);
        let near = pairs
            .filter(|(time, model)| (**time - **model).abs() < 300.0)
            .count();
        let mean_error = mean(times) / mean(simulated) - 1.0;
        Self { mean_error, near }
    }

    fn holds(&self) -> bool {
        self.mean_error.abs() < LATE_ERROR
            && self.near as f64 >= (1.0 - LATE_SHARE) * REQUESTS as f64
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = 100.0 * self.mean_error;
        write!(
            f,
            "mean off by {percent:.1} %, {} of {REQUESTS} within 300 µs",
            self.near
        )
    }
}

/// The time of each request in the attempt where it came closest to its model.
///
/// Being late spoils other requests in each attempt, for a missed revolution leaves the platter where it would be;
/// what the disk does wrong it does wrong in all of them. What is lost is that a disk may be too early: being late
/// hides it. That needs a quiet machine.
fn keep_closest(closest: &mut Vec<f64>, times: &[f64], simulated: &[f64]) {
    if closest.is_empty() {
        closest.extend(times);
    }
    for ((kept, time), model) in closest.iter_mut().zip(times).zip(simulated) {
        if (time - model).abs() < (*kept - model).abs() {
            *kept = *time;
        }
    }
}

/// Times of one run, and the share of wake-ups that were late meanwhile.
fn attempt(number: usize) -> (Vec<f64>, f64) {
    let name = format!("tierwise-live-{}-{number}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    fs::create_dir(&directory).expect("a directory");
    let witness = Witness::start();
    let times = live(&directory);
    let late_share = witness.late_share();
    fs::remove_dir_all(&directory).expect("removal");
    (times, late_share)
}

#[test]
#[ignore = "needs root and a quiet host; `make test` runs it"]
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
    let (mut quiet, mut disturbed) = (0, 0);
    let mut closest = Vec::new();
    while quiet < ATTEMPTS && quiet + disturbed < DISTURBED_ATTEMPTS {
        let (times, late_share) = attempt(quiet + disturbed);
        let alone = Verdict::of(&times, &simulated);
        let late = 100.0 * late_share;
        eprintln!("{alone}; {late:.1} % of the witness's wake-ups late");
        if alone.holds() {
            return;
        }
        if late_share < DISTURBED_SHARE {
            quiet += 1;
            continue;
        }
        disturbed += 1;
        keep_closest(&mut closest, &times, &simulated);
        let together = Verdict::of(&closest, &simulated);
        eprintln!(
            "disturbed; each request where it came closest in {disturbed} such runs: {together}"
        );
        if disturbed >= ENOUGH_DISTURBED && together.holds() {
            return;
        }
    }
    panic!(
        "{quiet} runs on a quiet machine and {disturbed} on a disturbed one, and the disk kept to its model in none"
    );
}

// Who sees whether the machine lets threads run when they want to: one thread for each processor that wakes every
// millisecond and counts how often it came late.

const PERIOD: Duration = Duration::from_millis(1);

/// A request waits for the wake-ups of three threads; three of these are what it may be off.
const LATE: Duration = Duration::from_micros(100);

/// Wakes with the priority of the thread that started it, until it is asked what it saw.
struct Witness {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Wakeups>>,
}

#[derive(Default)]
struct Wakeups {
    all: u64,
    late: u64,
}

impl Witness {
    fn start() -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let on = |processor| {
            let ended = Arc::clone(&ended);
            thread::spawn(move || count(processor, &ended))
        };
        let threads = usable_processors().into_iter().map(on).collect();
        Self { ended, threads }
    }

    /// The share of wake-ups that were late.
    fn late_share(self) -> f64 {
        self.ended.store(true, Ordering::Relaxed);
        let mut sum = Wakeups::default();
        for thread in self.threads {
            let seen = thread.join().expect("no panic");
            sum.all += seen.all;
            sum.late += seen.late;
        }
        sum.late as f64 / sum.all.max(1) as f64
    }
}

/// Wakes at instants that were settled before, so that each one that is slept through is late too.
fn count(processor: usize, ended: &AtomicBool) -> Wakeups {
    stay_on(processor);
    let mut seen = Wakeups::default();
    let mut due = Instant::now();
    while !ended.load(Ordering::Relaxed) {
        due += PERIOD;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        seen.all += 1;
        seen.late += u64::from(due.elapsed() > LATE);
    }
    seen
}

fn usable_processors() -> Vec<usize> {
    // SAFETY: a set of zeros is an empty one; the pointer is to a live set of the size that is told.
    let set = unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set);
        set
    };
    let all = 0..libc::CPU_SETSIZE as usize;
    // SAFETY: no number is beyond the set.
    all.filter(|processor| unsafe { libc::CPU_ISSET(*processor, &set) })
        .collect()
}

/// Keeps the calling thread on one processor, and its timer exact.
fn stay_on(processor: usize) {
    // SAFETY: a set of zeros is an empty one; the pointer is to a live set of the size that is told.
    unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
        libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0);
    }
}
