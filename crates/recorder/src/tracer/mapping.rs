//! Memory mapped to a part of a file, or of a kernel object shown as one.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};

/// A shared mapping; unmapped when it is dropped.
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns its memory, which no thread is bound to.
unsafe impl Send for Mapping {}
// SAFETY: it hands out shared memory for reading, or atomic memory.
unsafe impl Sync for Mapping {}

/// What may be done with a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading alone.
    Read,
    /// Reading and writing.
    Write,
}

impl Mapping {
    /// Maps `bytes` of a file from an offset, which is a multiple of the page size.
    pub fn new(
        file: BorrowedFd<'_>,
        bytes: usize,
        access: Access,
        offset: usize,
    ) -> io::Result<Self> {
        let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        let protection = match access {
            Access::Read => libc::PROT_READ,
            Access::Write => libc::PROT_READ | libc::PROT_WRITE,
        };
        // SAFETY: a new mapping at a place of the kernel's choice.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                offset,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at 0"))?;
        Ok(Self { start, bytes })
    }

    /// The place at an offset, if a `T` may lie there.
    pub fn place<T>(&self, offset: usize) -> NonNull<T> {
        assert!(offset.is_multiple_of(align_of::<T>()) && offset + size_of::<T>() <= self.bytes);
        // SAFETY: within the mapping.
        unsafe { self.start.add(offset).cast() }
    }

    /// Bytes that nobody writes as long as they are borrowed; the caller ensures that.
    pub fn slice(&self, offset: usize, length: usize) -> &[u8] {
        assert!(
            offset
                .checked_add(length)
                .is_some_and(|end| end <= self.bytes)
        );
        // SAFETY: within the mapping, which lives as long as what is borrowed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(offset), length) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing borrowed from it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
