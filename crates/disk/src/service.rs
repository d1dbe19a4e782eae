//! Answers requests when the model says: the part of the server that several threads share.
//!
//! A request that is due the moment it arrives is answered by the thread that brought it. All others are
//! answered by the timer thread, which sleeps until shortly before the next one is due and spins the rest.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tierwise_device::{Device, Nanos};

use crate::clock;
use crate::pacer::{Arrival, Done, Pacer};
use crate::stats::{Counters, DeviceStats};
use crate::store::Store;

/// How to answer a request.
pub(crate) trait Reply: Send {
    /// Sends the answer; a read takes its bytes from the store.
    fn send(self, store: &dyn Store);
}

/// A device that is being served.
pub(crate) struct Service<R> {
    store: Box<dyn Store>,
    shared: Mutex<Shared<R>>,
    wake: Condvar,
    /// When the next request is due, for the timer thread to see while it spins.
    next_due: AtomicU64,
    longest_spin: Nanos,
}

struct Shared<R> {
    pacer: Pacer<R>,
    counters: Counters,
    /// The time until which the timer thread sleeps, or 0 while it is awake.
    sleeping_until: Nanos,
}

/// The value of `next_due` while the device is idle.
const NEVER: Nanos = Nanos::MAX;

/// The share of a wait that the timer thread spins, at most; the rest it sleeps.
const SPIN_SHARE: Nanos = 10;

/// Waits that are no longer than this are spun whole: a sleep takes about as long to end.
const SHORTEST_SLEEP: Nanos = 10_000;

impl<R: Reply> Service<R> {
    pub fn new(
        device: Box<dyn Device>,
        store: Box<dyn Store>,
        counters: Counters,
        longest_spin: Nanos,
    ) -> Self {
        let pacer = Pacer::new(device, counters.path);
        let shared = Mutex::new(Shared {
            pacer,
            counters,
            sleeping_until: 0,
        });
        Self {
            store,
            shared,
            wake: Condvar::new(),
            next_due: AtomicU64::new(NEVER),
            longest_spin,
        }
    }

    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Takes a request, and answers whatever is due by then.
    pub fn submit(&self, arrival: Arrival<R>) {
        let mut done = Vec::new();
        let mut shared = self.lock();
        let now = clock::now();
        shared
            .counters
            .arrived(now, arrival.partition, &arrival.request);
        shared.pacer.submit(now, arrival, &mut done);
        self.publish_next_due(&mut shared);
        drop(shared);
        self.answer(&mut done);
    }

    pub fn report(&self) -> DeviceStats {
        self.lock().counters.report()
    }

    pub fn reset_counters(&self) {
        self.lock().counters.reset();
    }

    pub fn set_timing(&self, on: bool) {
        let mut done = Vec::new();
        self.lock().pacer.set_timing(on, clock::now(), &mut done);
        self.answer(&mut done);
    }

    pub fn set_path(&self, path: Nanos) {
        let mut shared = self.lock();
        shared.pacer.set_path(path);
        shared.counters.path = path;
    }

    /// Answers requests as they become due, for ever.
    pub fn run_timer(&self) -> ! {
        let mut done = Vec::with_capacity(128);
        let mut shared = self.lock();
        loop {
            shared = self.wait_until_due(shared);
            shared.pacer.advance(clock::now(), &mut done);
            self.publish_next_due(&mut shared);
            drop(shared);
            self.answer(&mut done);
            shared = self.lock();
        }
    }

    fn answer(&self, done: &mut Vec<Done<R>>) {
        for Done { served, reply } in done.drain(..) {
            self.lock().counters.answered(clock::now(), served);
            reply.send(self.store());
        }
    }

    /// Tells the timer thread, asleep or spinning, when to look again.
    fn publish_next_due(&self, shared: &mut Shared<R>) {
        let next_due = shared.pacer.next_due().unwrap_or(NEVER);
        self.next_due.store(next_due, Ordering::Release);
        if next_due < shared.sleeping_until {
            shared.sleeping_until = 0;
            self.wake.notify_one();
        }
    }

    fn wait_until_due<'a>(
        &'a self,
        mut shared: MutexGuard<'a, Shared<R>>,
    ) -> MutexGuard<'a, Shared<R>> {
        loop {
            let now = clock::now();
            let due = self.next_due.load(Ordering::Acquire);
            if due <= now {
                return shared;
            }
            let wait = due - now;
            let spin =
                (wait / SPIN_SHARE).clamp(SHORTEST_SLEEP, self.longest_spin.max(SHORTEST_SLEEP));
            shared = self.sleep(shared, due, wait.saturating_sub(spin));
            if self.next_due.load(Ordering::Acquire) == due {
                drop(shared);
                self.spin_until_due();
                shared = self.lock();
            }
        }
    }

    fn sleep<'a>(
        &'a self,
        mut shared: MutexGuard<'a, Shared<R>>,
        due: Nanos,
        time: Nanos,
    ) -> MutexGuard<'a, Shared<R>> {
        if time == 0 {
            return shared;
        }
        shared.sleeping_until = due;
        shared = if due == NEVER {
            self.wake
                .wait(shared)
                .unwrap_or_else(PoisonError::into_inner)
        } else {
            let slept = self.wake.wait_timeout(shared, Duration::from_nanos(time));
            slept.unwrap_or_else(PoisonError::into_inner).0
        };
        shared.sleeping_until = 0;
        shared
    }

    fn spin_until_due(&self) {
        // A wake-up without cause may leave more than a spin to wait; then the caller sleeps again.
        let give_up = clock::now() + 2 * self.longest_spin.max(SHORTEST_SLEEP);
        while clock::now() < self.next_due.load(Ordering::Acquire).min(give_up) {
            std::hint::spin_loop();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared<R>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
