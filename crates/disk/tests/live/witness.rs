//! Who sees whether the machine lets threads run when they want to: one thread for each processor that wakes every
//! millisecond and counts how often it came late.

use std::mem::{size_of, zeroed};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_millis(1);

/// A request waits for the wake-ups of three threads; three of these are what it may be off.
const LATE: Duration = Duration::from_micros(100);

/// Wakes with the priority of the thread that started it, until it is asked what it saw.
pub struct Witness {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Wakeups>>,
}

#[derive(Default)]
struct Wakeups {
    all: u64,
    late: u64,
}

impl Witness {
    pub fn start() -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let on = |processor| {
            let ended = Arc::clone(&ended);
            thread::spawn(move || count(processor, &ended))
        };
        let threads = usable_processors().into_iter().map(on).collect();
        Self { ended, threads }
    }

    /// The share of wake-ups that were late.
    pub fn late_share(self) -> f64 {
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
