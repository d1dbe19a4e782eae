//! How sessions take, wait for and release keys of hot locks.

use tierwise_device::Nanos;
use tierwise_work::{HotLock, TimeCategory};

use crate::kernel::events::Event;
use crate::kernel::session::{NONE, Resume};
use crate::kernel::simulation::Simulation;
use crate::locks::hot_locks::LockOutcome;

/// After this many attempts a session continues without the key, as after a time-out.
const MAX_ATTEMPTS: u32 = 100;

impl Simulation<'_> {
    /// Retries after the next delay of the engine plus a recorded lateness.
    fn retry_after(&mut self, index: u32, lock: &HotLock) -> bool {
        let late_ns = match lock.late_ns.len() {
            0 => 0,
            many => lock.late_ns[self.random.below(many)],
        };
        let session = self.session(index);
        let delay = (session.lock_attempts as usize).min(lock.retry_ns.len() - 1);
        let sleep_ns: Nanos = lock.retry_ns[delay] + late_ns;
        session.lock_attempts += 1;
        session.resume = Resume::Retry;
        self.drop_snapshot(index);
        self.set_activity(index, TimeCategory::Lock);
        self.events
            .push(self.now + sleep_ns.max(1), Event::Wake(index));
        self.block(index)
    }

    /// The key that a session wants: the one it waits for, or a random one.
    fn choose_key(&mut self, index: u32, lock: u16) -> u32 {
        let awaited = self.session(index).awaited_key;
        if awaited != NONE {
            return awaited;
        }
        let (first, count) = self.locks.range(lock);
        first + self.random.below(count as usize) as u32
    }

    /// A session takes a key of a lock; whether it can continue at once.
    pub(crate) fn take_lock(&mut self, index: u32, lock: u16) -> bool {
        let key = self.choose_key(index, lock);
        let outcome = self.locks.request(index, lock, key);
        if outcome != LockOutcome::Busy {
            self.session(index).awaited_key = NONE;
            self.session(index).lock_attempts = 0;
        }
        match outcome {
            LockOutcome::Skipped => true,
            LockOutcome::Taken => {
                self.session(index).held_keys.push(key);
                self.take_snapshot(index);
                true
            }
            LockOutcome::Busy if self.session(index).lock_attempts > MAX_ATTEMPTS => {
                self.session(index).awaited_key = NONE;
                self.session(index).lock_attempts = 0;
                true
            }
            LockOutcome::Busy => {
                self.session(index).awaited_key = key;
                let rules = self.locks.rules(lock);
                self.retry_after(index, rules)
            }
            LockOutcome::Queued => {
                self.set_activity(index, TimeCategory::Lock);
                self.block(index)
            }
        }
    }

    fn release_key(&mut self, key: u32) {
        let Some(next) = self.locks.release(key) else {
            return;
        };
        self.session(next).held_keys.push(key);
        let wake_ns = self.log.as_ref().map_or(0, |log| log.rules.wake_ns);
        self.events
            .push(self.now + Nanos::from(wake_ns), Event::Wake(next));
    }

    /// Releases the keys that are not held over a commit.
    pub(crate) fn release_before_commit(&mut self, index: u32) {
        let mut at = 0;
        while let Some(&key) = self.session(index).held_keys.get(at) {
            if self.locks.is_over_commit(key) {
                at += 1;
                continue;
            }
            self.session(index).held_keys.swap_remove(at);
            self.release_key(key);
        }
    }

    /// Releases all keys of a session; waiting sessions continue.
    pub(crate) fn release_locks(&mut self, index: u32) {
        while let Some(key) = self.session(index).held_keys.pop() {
            self.release_key(key);
        }
    }
}
