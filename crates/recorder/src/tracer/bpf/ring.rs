//! The reader's side of a ring of records.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::Map;
use crate::tracer::mapping::{Access, Mapping};

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
            consumer: Mapping::new(map.file(), page, Access::Write, 0)?,
            producer: Mapping::new(map.file(), page + 2 * bytes, Access::Read, page)?,
            bytes,
            page,
            map,
        })
    }

    /// Where programs write.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Passes every complete record to `take`, and frees its space.
    pub fn drain(&mut self, mut take: impl FnMut(&[u8])) {
        let mut at = position(&self.consumer).load(Ordering::Relaxed);
        while at < position(&self.producer).load(Ordering::Acquire) {
            // A ring's size divides 2^64: the position wraps as the counter does.
            let offset = self.page + (at as usize & (self.bytes - 1));
            let head = word(&self.producer, offset).load(Ordering::Acquire);
            if head & BUSY != 0 {
                break;
            }
            let length = (head & !DISCARDED) as usize;
            if head & DISCARDED == 0 {
                take(self.producer.slice(offset + HEADER_BYTES, length));
            }
            at += (HEADER_BYTES + length).next_multiple_of(8) as u64;
            position(&self.consumer).store(at, Ordering::Release);
        }
    }
}

/// The position at the begin of a mapping, which the kernel uses atomically.
fn position(of: &Mapping) -> &AtomicU64 {
    // SAFETY: within the mapping and aligned.
    unsafe { of.place(0).as_ref() }
}

/// A word that the kernel uses atomically.
fn word(of: &Mapping, offset: usize) -> &AtomicU32 {
    // SAFETY: within the mapping and aligned.
    unsafe { of.place(offset).as_ref() }
}

fn page_bytes() -> usize {
    // SAFETY: takes no pointers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}
