//! Hot locks: each has a number of equal keys; one session holds a key, others wait in order of arrival, or try again
//! after the engine's delays.
//!
//! Assumption: keys are alike, and each request draws one. Left out: locks without a recorded wait; deadlocks: a wait
//! that would close a circle is skipped, as an engine ends one of those transactions. Source of the numbers: fitted to
//! the recorded waits.

use std::collections::VecDeque;

use tierwise_device::Nanos;
use tierwise_work::{HotLock, TimeCategory};

use crate::kernel::clock::TaskId;
use crate::kernel::machine::Machine;
use crate::kernel::task::TaskHandle;

/// After this many attempts a session continues without the key, as after a time-out.
const MAX_ATTEMPTS: usize = 100;

/// A key: an index among those of all locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockKeyId(u32);

#[derive(Clone, Debug)]
struct Key {
    over_commit: bool,
    holder: Option<TaskId>,
    waiting: VecDeque<TaskId>,
}

/// Result of a request for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LockOutcome {
    /// The session holds it now, and did not before.
    Taken,
    /// The session held it before, or waiting for it would close a circle.
    Skipped,
    /// The session waits until the holder releases it.
    Queued,
    /// Another session holds it; the session tries again later.
    Busy,
}

/// The keys of all locks.
#[derive(Debug)]
pub(crate) struct HotLocks<'a> {
    locks: &'a [HotLock],
    keys: Vec<Key>,
    /// First key of each lock.
    first: Vec<u32>,
    /// The key that each task waits for.
    waits_for: Vec<Option<LockKeyId>>,
}

impl<'a> HotLocks<'a> {
    pub(crate) fn new(locks: &'a [HotLock], tasks: usize) -> Self {
        let mut keys = Vec::new();
        let mut first = Vec::with_capacity(locks.len());
        for lock in locks {
            first.push(keys.len() as u32);
            let key = Key {
                over_commit: lock.over_commit,
                holder: None,
                waiting: VecDeque::new(),
            };
            keys.extend(std::iter::repeat_n(key, lock.keys.max(1) as usize));
        }
        Self {
            locks,
            keys,
            first,
            waits_for: vec![None; tasks],
        }
    }

    fn key(&mut self, key: LockKeyId) -> &mut Key {
        &mut self.keys[key.0 as usize]
    }

    /// Requests a key. `retries`: who does not get it tries again.
    fn request(&mut self, session: TaskId, key: LockKeyId, retries: bool) -> LockOutcome {
        let holder = self.key(key).holder;
        match holder {
            None => {
                self.key(key).holder = Some(session);
                LockOutcome::Taken
            }
            Some(holder) if holder == session || self.waits_on(holder, session) => {
                LockOutcome::Skipped
            }
            Some(_) if retries => LockOutcome::Busy,
            Some(_) => {
                self.key(key).waiting.push_back(session);
                self.waits_for[session.0 as usize] = Some(key);
                LockOutcome::Queued
            }
        }
    }

    /// Whether `from` waits, directly or through other sessions, for a key held by `session`.
    fn waits_on(&self, from: TaskId, session: TaskId) -> bool {
        let mut at = from;
        for _ in 0..self.waits_for.len() {
            let awaited = self.waits_for[at.0 as usize];
            let holder = awaited.and_then(|key| self.keys[key.0 as usize].holder);
            match holder {
                None => return false,
                Some(holder) if holder == session => return true,
                Some(holder) => at = holder,
            }
        }
        true
    }

    /// Releases a key; returns the session that holds it next, if any waited.
    fn release(&mut self, key: LockKeyId) -> Option<TaskId> {
        let released = self.key(key);
        let next = released.waiting.pop_front();
        released.holder = next;
        if let Some(session) = next {
            self.waits_for[session.0 as usize] = None;
        }
        next
    }
}

impl TaskHandle<'_> {
    /// Takes a key of a lock, drawn at random.
    pub(crate) async fn lock(&self, lock: u16) {
        let key = self.machine().draw_key(lock);
        let rules = &self.program.work.locks[usize::from(lock)];
        let retries = !rules.retry_ns.is_empty();
        for attempt in 0..=MAX_ATTEMPTS {
            let outcome = self.machine().locks.request(self.id, key, retries);
            match outcome {
                LockOutcome::Skipped => return,
                LockOutcome::Taken => return self.change(|task| task.held_keys.push(key)),
                LockOutcome::Queued => return self.block(TimeCategory::Lock).await,
                LockOutcome::Busy => {
                    let late_ns = self.machine().draw_lateness_ns(rules);
                    let delay = attempt.min(rules.retry_ns.len() - 1);
                    let sleep_ns: Nanos = rules.retry_ns[delay] + late_ns;
                    self.sleep(sleep_ns.max(1), TimeCategory::Lock).await;
                }
            }
        }
    }
}

impl Machine<'_> {
    fn draw_key(&mut self, lock: u16) -> LockKeyId {
        let lock = usize::from(lock);
        let count = self.locks.locks[lock].keys.max(1) as usize;
        LockKeyId(self.locks.first[lock] + self.random.below(count) as u32)
    }

    /// How much later than its delay a session tries again.
    fn draw_lateness_ns(&mut self, rules: &HotLock) -> Nanos {
        match rules.late_ns.len() {
            0 => 0,
            count => rules.late_ns[self.random.below(count)],
        }
    }

    fn release_key(&mut self, key: LockKeyId) {
        if let Some(next) = self.locks.release(key) {
            self.task(next).held_keys.push(key);
            let wake_ns = self.log_time_ns(|rules| rules.wake_ns);
            self.clock.wake_after(wake_ns, next);
        }
    }

    /// Releases the keys that are not held over a commit.
    pub(crate) fn release_before_commit(&mut self, id: TaskId) {
        let mut at = 0;
        while let Some(&key) = self.task(id).held_keys.get(at) {
            if self.locks.key(key).over_commit {
                at += 1;
            } else {
                self.task(id).held_keys.swap_remove(at);
                self.release_key(key);
            }
        }
    }

    /// Releases all keys of a session; waiting sessions continue.
    pub(crate) fn release_locks(&mut self, id: TaskId) {
        while let Some(key) = self.task(id).held_keys.pop() {
            self.release_key(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASKS: [TaskId; 3] = [TaskId(0), TaskId(1), TaskId(2)];

    fn two_keys() -> HotLock {
        HotLock {
            name: String::new(),
            keys: 2,
            observed_share: 0.0,
            over_commit: true,
            retry_ns: Vec::new(),
            late_ns: Vec::new(),
        }
    }

    #[test]
    fn keys_pass_in_turn() {
        let lock = [two_keys()];
        let mut locks = HotLocks::new(&lock, 3);
        let mut request = |task| locks.request(task, LockKeyId(1), false);
        assert_eq!(request(TASKS[0]), LockOutcome::Taken);
        assert_eq!(request(TASKS[0]), LockOutcome::Skipped);
        assert_eq!(request(TASKS[1]), LockOutcome::Queued);
        assert_eq!(request(TASKS[2]), LockOutcome::Queued);
        assert_eq!(locks.release(LockKeyId(1)), Some(TASKS[1]));
        assert_eq!(locks.release(LockKeyId(1)), Some(TASKS[2]));
        assert_eq!(locks.release(LockKeyId(1)), None);
    }

    #[test]
    fn nobody_waits_in_a_circle() {
        let lock = [two_keys()];
        let mut locks = HotLocks::new(&lock, 3);
        let mut request = |task, key| locks.request(task, LockKeyId(key), false);
        assert_eq!(request(TASKS[0], 0), LockOutcome::Taken);
        assert_eq!(request(TASKS[1], 1), LockOutcome::Taken);
        assert_eq!(request(TASKS[0], 1), LockOutcome::Queued);
        assert_eq!(request(TASKS[1], 0), LockOutcome::Skipped);
    }
}
