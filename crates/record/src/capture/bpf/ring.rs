//! The reader's side of a ring of records.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::Map;

/// A ring, mapped: a page with the reader's position, one with the writers', then the data twice, so that no
/// record has to be read in two parts.
pub struct Ring {
    consumer: Mapping,
    producer: Mapping,
    bytes: usize,
    page: usize,
    // The kernel writes as long as the map lives.
    map: Map,
}

const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
const HEADER_BYTES: usize = 8;

impl Ring {
    /// Makes one of a size that is a power of two.
    pub fn new(bytes: u32) -> io::Result<Self> {
        let map = Map::ring(bytes)?;
        let bytes = bytes as usize;
        let page = page_bytes();
        Ok(Self {
            consumer: Mapping::new(&map, page, libc::PROT_READ | libc::PROT_WRITE, 0)?,
            producer: Mapping::new(&map, page + 2 * bytes, libc::PROT_READ, page)?,
            bytes,
            page,
            map,
        })
    }

    /// Where programs write.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Gives every record that is complete to `take`, and its room back.
    pub fn drain(&mut self, mut take: impl FnMut(&[u8])) {
        let mut at = self.consumer.position().load(Ordering::Relaxed);
        while at < self.producer.position().load(Ordering::Acquire) {
            // A ring's size divides 2^64: the position wraps as the counter does.
            let offset = self.page + (at as usize & (self.bytes - 1));
            let head = self.producer.word(offset).load(Ordering::Acquire);
            if head & BUSY != 0 {
                break;
            }
            let length = (head & !DISCARDED) as usize;
            if head & DISCARDED == 0 {
                take(self.producer.slice(offset + HEADER_BYTES, length));
            }
            at += (HEADER_BYTES + length).next_multiple_of(8) as u64;
            self.consumer.position().store(at, Ordering::Release);
        }
    }
}

struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns its memory, which no thread is bound to.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(map: &Map, bytes: usize, protection: libc::c_int, offset: usize) -> io::Result<Self> {
        let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                protection,
                libc::MAP_SHARED,
                map.descriptor(),
                offset,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at 0"))?;
        Ok(Self { start, bytes })
    }

    /// The position at its begin.
    fn position(&self) -> &AtomicU64 {
        // SAFETY: a mapping is at least a page long and aligned to one; the kernel uses the place atomically.
        unsafe { self.start.cast().as_ref() }
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.bytes);
        // SAFETY: within the mapping and aligned; the kernel uses the place atomically.
        unsafe { self.start.add(offset).cast().as_ref() }
    }

    fn slice(&self, offset: usize, length: usize) -> &[u8] {
        assert!(offset + length <= self.bytes);
        // SAFETY: within the mapping; the kernel does not write what is not given back.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(offset), length) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing borrowed from it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

fn page_bytes() -> usize {
    // SAFETY: takes no pointers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}
