//! Sessions and hot locks.

use tierwise_device::Nanos;
use tierwise_work::{HotLock, Part};

use crate::kernel::events::Event;
use crate::kernel::session::{NONE, Resume};
use crate::kernel::simulation::Simulation;
use crate::locks::hot_locks::Asked;

/// After so many tries one goes on without the key, as after a time-out.
const MOST_TRIES: u32 = 100;

impl Simulation<'_> {
    /// Tries the same once more, after a sleep that takes as much longer as one that was seen.
    fn retry_after(&mut self, index: u32, lock: &HotLock) -> bool {
        let late_ns = match lock.late_ns.len() {
            0 => 0,
            many => lock.late_ns[self.random.below(many)],
        };
        let session = self.session(index);
        let delay = (session.tries as usize).min(lock.retry_ns.len() - 1);
        let sleep_ns: Nanos = lock.retry_ns[delay] + late_ns;
        session.tries += 1;
        session.resume = Resume::Retry;
        self.reads_no_more(index);
        self.set_activity(index, Part::Lock);
        self.events
            .push(self.now + sleep_ns.max(1), Event::Wake(index));
        self.block(index)
    }

    /// The key that a session asks for: the one it has asked for before, or any.
    fn key(&mut self, index: u32, lock: u16) -> u32 {
        let asked_before = self.session(index).key;
        if asked_before != NONE {
            return asked_before;
        }
        let (first, count) = self.locks.range(lock);
        first + self.random.below(count as usize) as u32
    }

    /// A session takes a key of a lock; whether it can go on at once.
    pub(crate) fn take_lock(&mut self, index: u32, lock: u16) -> bool {
        let key = self.key(index, lock);
        let asked = self.locks.ask(index, lock, key);
        if asked != Asked::Busy {
            self.session(index).key = NONE;
            self.session(index).tries = 0;
        }
        match asked {
            Asked::Nothing => true,
            Asked::Taken => {
                self.session(index).held.push(key);
                self.begins_to_read(index);
                true
            }
            Asked::Busy if self.session(index).tries > MOST_TRIES => {
                self.session(index).key = NONE;
                self.session(index).tries = 0;
                true
            }
            Asked::Busy => {
                self.session(index).key = key;
                let known = self.locks.known(lock);
                self.retry_after(index, known)
            }
            Asked::Waits => {
                self.set_activity(index, Part::Lock);
                self.block(index)
            }
        }
    }

    fn release_key(&mut self, key: u32) {
        let Some(next) = self.locks.release(key) else {
            return;
        };
        self.session(next).held.push(key);
        let wake_ns = self.log.as_ref().map_or(0, |log| log.rules.wake_ns);
        self.events
            .push(self.now + Nanos::from(wake_ns), Event::Wake(next));
    }

    /// Lets go of the keys that are not kept over a commit.
    pub(crate) fn release_before_commit(&mut self, index: u32) {
        let mut at = 0;
        while let Some(&key) = self.session(index).held.get(at) {
            if self.locks.is_over_commit(key) {
                at += 1;
                continue;
            }
            self.session(index).held.swap_remove(at);
            self.release_key(key);
        }
    }

    /// Lets go of all keys that a session holds; those who waited go on.
    pub(crate) fn release_locks(&mut self, index: u32) {
        while let Some(key) = self.session(index).held.pop() {
            self.release_key(key);
        }
    }
}
