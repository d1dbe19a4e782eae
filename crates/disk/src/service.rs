//! Answers requests when the model says: the part of the server that several threads share.
//!
//! A request that is due the moment it arrives is answered by the thread that brought it. All others are
//! answered by the timer thread, which sleeps until shortly before the next one is due and spins the rest.

use std::sync::atomic::{AtomicU64, Ordering};

use tierwise_device::{Device, Nanos};

use crate::clock;
use crate::monitor::{Guard, Monitor};
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
    shared: Monitor<Shared<R>>,
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
        let shared = Monitor::new(Shared {
            pacer,
            counters,
            sleeping_until: 0,
        });
        Self {
            store,
            shared,
            next_due: AtomicU64::new(NEVER),
            longest_spin: longest_spin.max(SHORTEST_SLEEP),
        }
    }

    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Takes a request, and answers whatever is due by then.
    pub fn submit(&self, arrival: Arrival<R>) {
        let mut done = Vec::new();
        let mut shared = self.shared.lock();
        let now = clock::now();
        shared
            .counters
            .arrived(now, arrival.partition, &arrival.request);
        shared.pacer.submit(now, arrival, &mut done);
        let wake = self.publish_next_due(&mut shared);
        drop(shared);
        if wake {
            self.shared.notify();
        }
        self.answer(&mut done);
    }

    pub fn report(&self) -> DeviceStats {
        self.shared.lock().counters.report()
    }

    pub fn reset_counters(&self) {
        self.shared.lock().counters.reset();
    }

    pub fn set_timing(&self, on: bool) {
        let mut done = Vec::new();
        self.shared
            .lock()
            .pacer
            .set_timing(on, clock::now(), &mut done);
        self.answer(&mut done);
    }

    pub fn set_path(&self, path: Nanos) {
        let mut shared = self.shared.lock();
        shared.pacer.set_path(path);
        shared.counters.path = path;
    }

    /// Answers requests as they become due, for ever.
    pub fn run_timer(&self) -> ! {
        let mut done = Vec::with_capacity(128);
        loop {
            let mut shared = self.shared.lock();
            self.sleep_until_nearly_due(&mut shared);
            drop(shared);
            self.spin_until_due();
            let mut shared = self.shared.lock();
            shared.pacer.advance(clock::now(), &mut done);
            self.publish_next_due(&mut shared);
            drop(shared);
            self.answer(&mut done);
        }
    }

    fn answer(&self, done: &mut Vec<Done<R>>) {
        for Done { served, reply } in done.drain(..) {
            self.shared.lock().counters.answered(clock::now(), served);
            reply.send(self.store());
        }
    }

    /// Tells the timer thread when to look again; gives whether it must be woken for that.
    fn publish_next_due(&self, shared: &mut Shared<R>) -> bool {
        let next_due = shared.pacer.next_due().unwrap_or(NEVER);
        self.next_due.store(next_due, Ordering::Release);
        next_due < shared.sleeping_until
    }

    /// Gives the lock away until the next request is due but for a spin; earlier if one comes that is.
    fn sleep_until_nearly_due(&self, shared: &mut Guard<'_, Shared<R>>) {
        let mut due = self.next_due.load(Ordering::Acquire);
        loop {
            let now = clock::now();
            let spin =
                (due.saturating_sub(now) / SPIN_SHARE).clamp(SHORTEST_SLEEP, self.longest_spin);
            let wake_at = due.saturating_sub(spin);
            if wake_at <= now {
                return;
            }
            shared.sleeping_until = due;
            shared.wait_until((due != NEVER).then_some(wake_at));
            shared.sleeping_until = 0;
            let next_due = self.next_due.load(Ordering::Acquire);
            if next_due == due && due != NEVER {
                return;
            }
            due = next_due;
        }
    }

    fn spin_until_due(&self) {
        // A wake-up without cause may leave more than a spin to wait; then the caller sleeps again.
        let give_up = clock::now() + 2 * self.longest_spin;
        while clock::now() < self.next_due.load(Ordering::Acquire).min(give_up) {
            std::hint::spin_loop();
        }
    }
}
