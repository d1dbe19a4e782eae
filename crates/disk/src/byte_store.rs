//! Storage for the bytes of a disk.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::NonNull;

use tierwise_device::{Nanos, SECTOR_BYTES};

use crate::undo_log::{CutReport, PowerCutUndoLog, UnflushedFate};

/// The content of a device, addressed in bytes.
///
/// Ranges lie within the size; the caller ensures that. Requests that overlap in space and time may see parts
/// of each other, as on a real disk.
pub trait ByteStore {
    /// The bytes of a range; unwritten bytes are zero.
    fn read(&self, offset: u64, length: usize) -> &[u8];

    /// Replaces the bytes of a range.
    fn write(&self, offset: u64, data: &[u8]);

    /// Forgets a range, which reads as zeros afterwards.
    fn discard(&self, offset: u64, length: u64);
}

/// Memory of a mapping.
pub(crate) struct MemoryMapping {
    start: NonNull<u8>,
    size: usize,
}

// SAFETY: the memory is of no thread, and has one owner.
unsafe impl Send for MemoryMapping {}

impl MemoryMapping {
    /// Reserves addresses for `size` bytes, which cost nothing until they are written.
    pub fn new(size: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        Self::map(size, libc::PROT_READ | libc::PROT_WRITE, flags, -1)
    }

    /// The first `size` bytes of what a driver shows in its device. They may only be read.
    pub fn of(device: &File, size: usize) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Self::map(size, libc::PROT_READ, flags, device.as_raw_fd())
    }

    fn map(size: usize, protection: i32, flags: i32, file: RawFd) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), size, protection, flags, file, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start =
            NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapping at address 0"))?;
        Ok(Self { start, size })
    }

    /// The address of a range.
    pub fn at(&self, offset: u64, length: u64) -> *mut u8 {
        assert!(
            offset + length <= self.size as u64,
            "a range within the store or buffer"
        );
        // SAFETY: the offset is within the mapping.
        unsafe { self.start.as_ptr().add(offset as usize) }
    }

    /// The bytes of a range.
    pub fn read(&self, offset: u64, length: usize) -> &[u8] {
        // SAFETY: the range is within the mapping, which lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.at(offset, length as u64), length) }
    }

    /// Replaces the bytes of a range.
    pub fn write(&self, offset: u64, data: &[u8]) {
        let target = self.at(offset, data.len() as u64);
        // SAFETY: the range is within the mapping, and `data` is not part of it.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), target, data.len()) };
    }
}

impl Drop for MemoryMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.size) };
    }
}

/// Bytes in memory.
pub struct MemoryStore {
    memory: MemoryMapping,
    page_bytes: u64,
}

/// Size of the kernel's pages.
pub(crate) fn page_bytes() -> u64 {
    // SAFETY: takes no pointers. It cannot fail: every kernel has pages.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// `MADV_DONTNEED` for memory that is locked, since Linux 5.18.
const MADV_DONTNEED_LOCKED: libc::c_int = 24;

impl MemoryStore {
    /// Reserves addresses for `size_bytes`; no memory yet.
    pub fn new(size_bytes: u64) -> io::Result<Self> {
        let size = usize::try_from(size_bytes).map_err(io::Error::other)?;
        Ok(Self {
            memory: MemoryMapping::new(size)?,
            page_bytes: page_bytes(),
        })
    }

    fn drop_pages(&self, offset: u64, length: u64) -> bool {
        let start = self.memory.at(offset, length).cast();
        // SAFETY: whole pages within the mapping; they read as zeros afterwards.
        unsafe { libc::madvise(start, length as usize, MADV_DONTNEED_LOCKED) == 0 }
    }

    fn clear(&self, offset: u64, length: u64) {
        // SAFETY: the range is within the mapping.
        unsafe { std::ptr::write_bytes(self.memory.at(offset, length), 0, length as usize) };
    }
}

impl ByteStore for MemoryStore {
    fn read(&self, offset: u64, length: usize) -> &[u8] {
        self.memory.read(offset, length)
    }

    fn write(&self, offset: u64, data: &[u8]) {
        self.memory.write(offset, data);
    }

    fn discard(&self, offset: u64, length: u64) {
        let (first, last) = whole_pages_within(offset, length, self.page_bytes);
        self.clear(offset, first - offset);
        self.clear(last, offset + length - last);
        if last > first && !self.drop_pages(first, last - first) {
            self.clear(first, last - first);
        }
    }
}

/// Where the pages that lie wholly in a range begin and end. The kernel drops whole pages only, and would
/// also drop a page that lies in the range only in part.
fn whole_pages_within(offset: u64, length: u64, page_bytes: u64) -> (u64, u64) {
    let first = offset.next_multiple_of(page_bytes).min(offset + length);
    let last = ((offset + length) / page_bytes * page_bytes).max(first);
    (first, last)
}

// A store that can lose its power: it knows which writes would be lost with it.
//
// The store holds the host's view. Beside it is a log of the writes that are not durable yet, each with the
// bytes it replaced; a power cut undoes them from it. A write in flight when the power goes was not
// acknowledged: it is undone, or torn, like one that completed without a flush.

/// When a completed write survives a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCacheMode {
    /// At once: there is no write cache, or one that is protected.
    Safe,
    /// When a flush that arrived after it has completed, or the disk has written it back.
    Volatile,
    /// When the disk has written it back: a flush is acknowledged and does nothing.
    Lying,
}

/// When a disk writes back of its own accord, oldest first.
#[derive(Clone, Copy, Debug)]
pub struct WriteBackPolicy {
    /// This long after a write completed.
    pub after: Nanos,
    /// As soon as there is more than this, in bytes.
    pub most_bytes: u64,
}

/// The effect of a request in flight once it is completed.
#[derive(Debug)]
pub struct CompletionEffect {
    cycle: u64,
    what: EffectKind,
}

#[derive(Debug)]
enum EffectKind {
    Nothing,
    Write(u64),
    Flush(u64),
}

/// A store with a write cache in front. A *cycle* is the time from one power cut to the next.
pub struct VolatileStore {
    store: Box<dyn ByteStore>,
    cache: WriteCacheMode,
    write_back: WriteBackPolicy,
    cycle: u64,
    log: PowerCutUndoLog,
}

impl VolatileStore {
    /// A store that is on for the first time.
    pub fn new(
        store: Box<dyn ByteStore>,
        cache: WriteCacheMode,
        write_back: WriteBackPolicy,
    ) -> Self {
        Self {
            store,
            cache,
            write_back,
            cycle: 0,
            log: PowerCutUndoLog::default(),
        }
    }

    /// Number of power cuts so far. Requests of an earlier cycle have no effect, and fail.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Whether flushes do nothing.
    pub fn lies(&self) -> bool {
        self.cache == WriteCacheMode::Lying
    }

    /// Bytes of completed writes that a power cut would put at risk.
    pub fn unflushed_bytes(&self) -> u64 {
        self.log.completed_bytes()
    }

    /// The bytes of a range, as the host sees them.
    pub fn read(&self, offset: u64, length: usize) -> &[u8] {
        self.store.read(offset, length)
    }

    /// The effect of a request that changes nothing.
    pub fn nothing(&self, cycle: u64) -> CompletionEffect {
        let what = EffectKind::Nothing;
        CompletionEffect { cycle, what }
    }

    /// A write arrives: the host sees it from now on.
    pub fn write(&mut self, cycle: u64, offset: u64, data: &[u8]) -> CompletionEffect {
        if cycle != self.cycle() {
            return self.nothing(cycle);
        }
        let sectors = offset / SECTOR_BYTES..(offset + data.len() as u64).div_ceil(SECTOR_BYTES);
        let length = (sectors.end - sectors.start) * SECTOR_BYTES;
        let old = self
            .store
            .read(sectors.start * SECTOR_BYTES, length as usize);
        let number = self.log.push(sectors, old);
        self.store.write(offset, data);
        let what = EffectKind::Write(number);
        CompletionEffect { cycle, what }
    }

    /// A discard arrives: its range reads as zeros from now on, also after a power cut.
    pub fn discard(&mut self, cycle: u64, offset: u64, length: u64) -> CompletionEffect {
        if cycle == self.cycle() {
            let whole = offset.div_ceil(SECTOR_BYTES)..(offset + length) / SECTOR_BYTES;
            self.log
                .push_durable(whole.start..whole.end.max(whole.start));
            self.store.discard(offset, length);
        }
        self.nothing(cycle)
    }

    /// A flush arrives.
    pub fn flush(&mut self, cycle: u64) -> CompletionEffect {
        let what = match self.cache {
            WriteCacheMode::Volatile => EffectKind::Flush(self.log.start_flush()),
            WriteCacheMode::Safe | WriteCacheMode::Lying => EffectKind::Nothing,
        };
        CompletionEffect { cycle, what }
    }

    /// Completes a request at time `now`; returns false if the power went meanwhile, since it then has no
    /// effect.
    #[must_use]
    pub fn complete(&mut self, effect: &CompletionEffect, now: Nanos) -> bool {
        if let EffectKind::Nothing = effect.what {
            return effect.cycle == self.cycle();
        }
        if effect.cycle != self.cycle() {
            return false;
        }
        match effect.what {
            EffectKind::Write(number) if self.cache == WriteCacheMode::Safe => {
                self.log.make_durable(number)
            }
            EffectKind::Write(number) => {
                self.log.complete(number, now);
                self.write_back(now);
            }
            EffectKind::Flush(flushed) => self.log.complete_flush(flushed),
            EffectKind::Nothing => {}
        }
        true
    }

    /// The power goes, and comes back: a new cycle begins.
    ///
    /// Without a seed all writes that are not durable are lost; with one, a random subset of their sectors is
    /// kept.
    pub fn cut(&mut self, keep_random: Option<u64>, now: Nanos) -> CutReport {
        self.write_back(now);
        self.cycle += 1;
        self.log
            .cut(&*self.store, &mut UnflushedFate::new(keep_random))
    }

    fn write_back(&mut self, now: Nanos) {
        let before = now.saturating_sub(self.write_back.after);
        self.log.write_back(before, self.write_back.most_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::whole_pages_within;

    #[test]
    fn a_page_that_lies_in_part_in_a_range_is_kept() {
        assert_eq!(whole_pages_within(4096, 8192, 4096), (4096, 12_288));
        assert_eq!(whole_pages_within(100, 9000, 4096), (4096, 8192));
        // aarch64 kernels may have pages of 16 or 64 KiB.
        assert_eq!(whole_pages_within(0, 69_632, 65_536), (0, 65_536));
        for (offset, length) in [(0, 4096), (4096, 65_536), (65_535, 2)] {
            let (first, last) = whole_pages_within(offset, length, 65_536);
            assert_eq!(first, last);
        }
    }
}
