//! Answers requests at their model times: the part of the server that several threads share.
//!
//! A request that is due the moment it arrives is answered by the thread that brought it. All others are
//! answered by the timer thread, which sleeps until shortly before the next one is due and spins the rest.

use std::sync::atomic::{AtomicU64, Ordering};

use tierwise_device::{Device, Nanos, Op};

use crate::clock;
use crate::faults::Faults;
use crate::monitor::{Guard, Monitor};
use crate::pacer::{Arrival, Done, Pacer};
use crate::stats::{Counters, DeviceStats};
use crate::undo_log::CutReport;
use crate::volatile::{Effect, VolatileStore};

/// How to answer a request.
pub(crate) trait Reply: Send {
    /// Sends the answer; a read takes its bytes from the store.
    fn send(self, store: &VolatileStore);

    /// Sends an error of input or output.
    fn fail(self);
}

/// The effect and the answer of a request, for when it is completed.
pub(crate) struct Pending<R> {
    pub effect: Effect,
    pub reply: R,
}

/// A device that is being served.
pub(crate) struct Service<R> {
    store: VolatileStore,
    faults: Faults,
    size_sectors: u64,
    shared: Monitor<Shared<R>>,
    /// When the next request is due, for the timer thread to see while it spins.
    next_due: AtomicU64,
    longest_spin: Nanos,
}

struct Shared<R> {
    pacer: Pacer<Pending<R>>,
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
        store: VolatileStore,
        counters: Counters,
        longest_spin: Nanos,
    ) -> Self {
        let size_sectors = device.capacity_sectors();
        let pacer = Pacer::new(device, counters.path);
        let shared = Monitor::new(Shared {
            pacer,
            counters,
            sleeping_until: 0,
        });
        Self {
            store,
            faults: Faults::none(),
            size_sectors,
            shared,
            next_due: AtomicU64::new(NEVER),
            longest_spin: longest_spin.max(SHORTEST_SLEEP),
        }
    }

    pub fn store(&self) -> &VolatileStore {
        &self.store
    }

    /// Takes a request, and answers all requests that are due by then.
    pub fn submit(&self, arrival: Arrival<Pending<R>>) {
        let mut done = Vec::new();
        let mut shared = self.shared.lock();
        let now = clock::now();
        shared
            .counters
            .arrived(now, arrival.partition, &arrival.request);
        let alive = self.faults.take(now);
        if !alive || (arrival.request.op == Op::Flush && self.store.lies()) {
            done.push(arrival.at_once(now));
        } else {
            shared.pacer.submit(now, arrival, &mut done);
        }
        let wake = self.publish_next_due(&mut shared);
        drop(shared);
        if wake {
            self.shared.notify();
        }
        self.answer(&mut done);
    }

    pub fn report(&self) -> DeviceStats {
        let unflushed_bytes = self.store.unflushed_bytes();
        let mut shared = self.shared.lock();
        let written = shared.pacer.written();
        shared.counters.report(unflushed_bytes, written)
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

    pub fn size_sectors(&self) -> u64 {
        self.size_sectors
    }

    /// The power goes and comes back: requests inside fail, and so do handles opened before.
    pub fn cut(&self, keep_random: Option<u64>) -> CutReport {
        let mut report = self.store.cut(keep_random, clock::now());
        let mut done = Vec::new();
        self.shared.lock().pacer.abort(&mut done);
        report.failed_requests = done.len() as u64;
        self.answer(&mut done);
        report
    }

    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Lets the device take `factor` times as long for everything, for a while.
    pub fn slow(&self, factor: f64, length: Nanos) {
        let mut shared = self.shared.lock();
        shared.pacer.slow(clock::now(), factor, length);
        let wake = self.publish_next_due(&mut shared);
        drop(shared);
        if wake {
            self.shared.notify();
        }
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

    fn answer(&self, done: &mut Vec<Done<Pending<R>>>) {
        for Done { served, reply } in done.drain(..) {
            let Pending { effect, reply } = reply;
            let now = clock::now();
            // In this order: a request that an unreadable sector or a dead device refuses has no effect.
            let succeeds = !self.faults.dead(now)
                && self.faults.let_through(&served.request)
                && self.store.complete(&effect, now);
            self.shared.lock().counters.answered(now, served, succeeds);
            if succeeds {
                reply.send(&self.store);
            } else {
                reply.fail();
            }
        }
    }

    /// Tells the timer thread when to look again; returns whether it must be woken for that.
    fn publish_next_due(&self, shared: &mut Shared<R>) -> bool {
        let next_due = shared.pacer.next_due().unwrap_or(NEVER);
        self.next_due.store(next_due, Ordering::Release);
        next_due < shared.sleeping_until
    }

    /// Releases the lock until shortly before the next request is due; earlier if one comes that is due.
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
