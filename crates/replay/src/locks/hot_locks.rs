//! Hot locks: each has a number of equal keys; one session holds a key, others wait in order of arrival.

use std::collections::VecDeque;

use tierwise_work::HotLock;

/// No session.
const NOBODY: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Key {
    over_commit: bool,
    holder: u32,
    waiting: VecDeque<u32>,
}

/// Result of a request for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockOutcome {
    /// The session holds it now, and did not before.
    Taken,
    /// The session held it before, or waiting for it would deadlock: an engine aborts one of such
    /// transactions; here the session continues without the key.
    Skipped,
    /// The session waits until the holder releases it.
    Queued,
    /// Another session holds it; the session retries later.
    Busy,
}

/// The keys of all locks.
#[derive(Debug)]
pub(crate) struct HotLocks<'a> {
    locks: &'a [HotLock],
    keys: Vec<Key>,
    /// First key and number of keys of each lock.
    ranges: Vec<(u32, u32)>,
    /// The key that each session waits for.
    waits_for: Vec<u32>,
}

impl<'a> HotLocks<'a> {
    pub(crate) fn new(locks: &'a [HotLock], sessions: usize) -> Self {
        let mut keys = Vec::new();
        let mut ranges = Vec::with_capacity(locks.len());
        for lock in locks {
            let count = lock.keys.max(1);
            ranges.push((keys.len() as u32, count));
            let (over_commit, waiting) = (lock.over_commit, VecDeque::new());
            let key = Key {
                over_commit,
                holder: NOBODY,
                waiting,
            };
            keys.extend(std::iter::repeat_n(key, count as usize));
        }
        Self {
            locks,
            keys,
            ranges,
            waits_for: vec![NOBODY; sessions],
        }
    }

    /// The first key and the number of keys of a lock.
    pub(crate) fn range(&self, lock: u16) -> (u32, u32) {
        self.ranges[usize::from(lock)]
    }

    /// Description of a lock.
    pub(crate) fn rules(&self, lock: u16) -> &'a HotLock {
        &self.locks[usize::from(lock)]
    }

    /// Whether a key is kept until the commit has ended.
    pub(crate) fn is_over_commit(&self, key: u32) -> bool {
        self.keys[key as usize].over_commit
    }

    /// Requests a key of a lock.
    pub(crate) fn request(&mut self, session: u32, lock: u16, key: u32) -> LockOutcome {
        match self.keys[key as usize].holder {
            NOBODY => {
                self.keys[key as usize].holder = session;
                LockOutcome::Taken
            }
            holder if holder == session || self.waits_on(holder, session) => LockOutcome::Skipped,
            _ if !self.rules(lock).retry_ns.is_empty() => LockOutcome::Busy,
            _ => {
                self.keys[key as usize].waiting.push_back(session);
                self.waits_for[session as usize] = key;
                LockOutcome::Queued
            }
        }
    }

    /// Whether `from` waits, directly or through other sessions, for a key held by `session`.
    fn waits_on(&self, from: u32, session: u32) -> bool {
        let mut at = from;
        for _ in 0..self.waits_for.len() {
            match self.waits_for[at as usize] {
                NOBODY => return false,
                key => at = self.keys[key as usize].holder,
            }
            if at == session {
                return true;
            }
        }
        true
    }

    /// Releases a key; returns the session that holds it next, if any waited.
    pub(crate) fn release(&mut self, key: u32) -> Option<u32> {
        let key = &mut self.keys[key as usize];
        let next = key.waiting.pop_front();
        key.holder = next.unwrap_or(NOBODY);
        if let Some(session) = next {
            self.waits_for[session as usize] = NOBODY;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(locks.request(0, 0, 1), LockOutcome::Taken);
        assert_eq!(locks.request(0, 0, 1), LockOutcome::Skipped);
        assert_eq!(locks.request(1, 0, 1), LockOutcome::Queued);
        assert_eq!(locks.request(2, 0, 1), LockOutcome::Queued);
        assert_eq!(locks.release(1), Some(1));
        assert_eq!(locks.release(1), Some(2));
        assert_eq!(locks.release(1), None);
    }

    #[test]
    fn nobody_waits_in_a_circle() {
        let lock = [two_keys()];
        let mut locks = HotLocks::new(&lock, 3);
        assert_eq!(locks.request(0, 0, 0), LockOutcome::Taken);
        assert_eq!(locks.request(1, 0, 1), LockOutcome::Taken);
        assert_eq!(locks.request(0, 0, 1), LockOutcome::Queued);
        assert_eq!(locks.request(1, 0, 0), LockOutcome::Skipped);
    }
}
