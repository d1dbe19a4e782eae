//! A lock and a condition that a real-time thread can share with ordinary ones.
//!
//! The standard library's mutex lets a real-time thread wait for an ordinary one that holds the lock but not
//! a processor, because others run there: for a whole tick, a hundred times the server's limit. This mutex
//! inherits priority: its holder runs at the priority of the waiting thread.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

use tierwise_device::Nanos;

/// A value behind a lock that inherits priority, with one condition to wait for.
pub(crate) struct Monitor<T> {
    // Boxed, because the system knows both by their addresses.
    mutex: Box<UnsafeCell<libc::pthread_mutex_t>>,
    condition: Box<UnsafeCell<libc::pthread_cond_t>>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through the lock only.
unsafe impl<T: Send> Sync for Monitor<T> {}
// SAFETY: mutex and condition belong to no thread while nobody borrows the monitor.
unsafe impl<T: Send> Send for Monitor<T> {}

impl<T> Monitor<T> {
    pub fn new(value: T) -> Self {
        let mutex = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        let condition = Box::new(UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER));
        let mut mutex_kind = MaybeUninit::uninit();
        let mut condition_kind = MaybeUninit::uninit();
        // SAFETY: the attributes are initialised before use and destroyed after; the objects stay in place.
        unsafe {
            check(libc::pthread_mutexattr_init(mutex_kind.as_mut_ptr()));
            check(libc::pthread_mutexattr_setprotocol(
                mutex_kind.as_mut_ptr(),
                libc::PTHREAD_PRIO_INHERIT,
            ));
            check(libc::pthread_mutex_init(mutex.get(), mutex_kind.as_ptr()));
            check(libc::pthread_mutexattr_destroy(mutex_kind.as_mut_ptr()));
            check(libc::pthread_condattr_init(condition_kind.as_mut_ptr()));
            check(libc::pthread_condattr_setclock(
                condition_kind.as_mut_ptr(),
                libc::CLOCK_MONOTONIC,
            ));
            check(libc::pthread_cond_init(
                condition.get(),
                condition_kind.as_ptr(),
            ));
            check(libc::pthread_condattr_destroy(condition_kind.as_mut_ptr()));
        }
        Self {
            mutex,
            condition,
            value: UnsafeCell::new(value),
        }
    }

    pub fn lock(&self) -> Guard<'_, T> {
        // SAFETY: the mutex is initialised; a thread that holds the guard does not lock again.
        check(unsafe { libc::pthread_mutex_lock(self.mutex.get()) });
        Guard(self)
    }

    /// Ends the wait of one thread.
    pub fn notify(&self) {
        // SAFETY: the condition is initialised.
        check(unsafe { libc::pthread_cond_signal(self.condition.get()) });
    }
}

impl<T> Drop for Monitor<T> {
    fn drop(&mut self) {
        // SAFETY: nobody borrows the monitor, so nobody waits and nobody holds the lock.
        unsafe {
            libc::pthread_cond_destroy(self.condition.get());
            libc::pthread_mutex_destroy(self.mutex.get());
        }
    }
}

/// The right to use the value.
pub(crate) struct Guard<'a, T>(&'a Monitor<T>);

impl<T> Guard<'_, T> {
    /// Releases the lock until notified or, if there is one, the deadline; may also end without cause.
    pub fn wait_until(&mut self, deadline: Option<Nanos>) {
        let (condition, mutex) = (self.0.condition.get(), self.0.mutex.get());
        // SAFETY: the calling thread holds the mutex, as this guard shows, and holds it again afterwards.
        let status = unsafe {
            match deadline.map(timespec) {
                Some(time) => libc::pthread_cond_timedwait(condition, mutex, &raw const time),
                None => libc::pthread_cond_wait(condition, mutex),
            }
        };
        assert!(
            matches!(status, 0 | libc::ETIMEDOUT),
            "waiting failed with error {status}"
        );
    }
}

fn timespec(time: Nanos) -> libc::timespec {
    libc::timespec {
        tv_sec: (time / 1_000_000_000) as _,
        tv_nsec: (time % 1_000_000_000) as _,
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock, and is borrowed exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: this thread holds the lock.
        unsafe { libc::pthread_mutex_unlock(self.0.mutex.get()) };
    }
}

fn check(status: libc::c_int) {
    assert_eq!(status, 0, "the system's threads are broken: error {status}");
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;
    use crate::clock;

    #[test]
    fn increments_of_many_threads_all_count() {
        let monitor = Arc::new(Monitor::new(0));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let monitor = Arc::clone(&monitor);
                thread::spawn(move || (0..10_000).for_each(|_| *monitor.lock() += 1))
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(*monitor.lock(), 40_000);
    }

    #[test]
    fn a_wait_ends_at_its_deadline() {
        let monitor = Monitor::new(());
        let deadline = clock::now() + 20_000_000;
        let mut guard = monitor.lock();
        while clock::now() < deadline {
            guard.wait_until(Some(deadline));
        }
        assert!(clock::now() < deadline + 60_000_000_000);
    }

    #[test]
    fn a_wait_without_deadline_ends_when_notified() {
        let monitor = Arc::new(Monitor::new(false));
        let other = Arc::clone(&monitor);
        let waiter = thread::spawn(move || {
            let mut ready = other.lock();
            while !*ready {
                ready.wait_until(None);
            }
        });
        *monitor.lock() = true;
        monitor.notify();
        waiter.join().expect("no panic");
    }
}
