//! Wakes the thread that waits for requests.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// An event counter of the kernel (`eventfd(2)`); clones share it.
#[derive(Debug)]
pub(crate) struct Waker(OwnedFd);

impl Waker {
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes no pointers; the descriptor is new and nobody else's.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: as above.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    pub fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    pub fn wake(&self) {
        let event = 1_u64.to_ne_bytes();
        // SAFETY: the buffer has the length given. It cannot fail: the counter does not overflow.
        unsafe { libc::write(self.0.as_raw_fd(), event.as_ptr().cast(), event.len()) };
    }

    /// Forgets wake-ups so far.
    pub fn clear(&self) {
        let mut events = [0_u8; 8];
        // SAFETY: the buffer has the length given; with nothing to read the call returns at once.
        unsafe { libc::read(self.0.as_raw_fd(), events.as_mut_ptr().cast(), events.len()) };
    }
}
